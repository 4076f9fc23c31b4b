"""Delivers verified work: into the source directory, onto a branch, or as a patch file."""

from .land import land
from .targets import check_landing

__all__ = ["check_landing", "land"]
