"""Command lines as the policy sees them."""

from .commands import Target, targets_of

__all__ = ["Target", "targets_of"]
