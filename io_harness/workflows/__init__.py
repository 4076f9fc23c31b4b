"""Deterministic half of the harness: what runs inside the Temporal workflow, and the types it speaks.

Nothing here has a clock, randomness, environment, file, network, or a third-party library but
pydantic and temporalio.
"""
