"""`python -m io_harness`."""

from io_harness.cli import main

if __name__ == "__main__":
    main()
