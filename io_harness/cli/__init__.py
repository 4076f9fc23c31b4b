"""The `io-harness` command."""
