"""Command lines as the policy sees them, and the shell that runs them."""

from .commands import Target, targets_of
from .program import shell

__all__ = ["Target", "shell", "targets_of"]
