"""Escape suite: attacks on a sandbox, each with a control in which the attack succeeds."""
