"""What is compared: each module runs the same scripted task in a process of its own.

    python -m benchmarks.contestants.NAME '{"urls": ["http://127.0.0.1:…"], …}'

prints a `Report` as its last line.
"""
