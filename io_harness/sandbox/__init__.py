"""Isolation of one command, and the egress proxy. Knows nothing of Temporal or agents."""
