"""The attacks, by kind. Imported inside the sandbox, where only the standard library is."""
