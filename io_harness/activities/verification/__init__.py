"""Runs a contract's criterion against a snapshot."""

from .verify import verify

__all__ = ["verify"]
