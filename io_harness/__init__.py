"""Runs an AI agent from a typed task contract to a verified result, durably, on Temporal."""

__version__ = "0.1.0"
TASK_QUEUE = "io-harness"
"""Task queue of runs where none is named."""
