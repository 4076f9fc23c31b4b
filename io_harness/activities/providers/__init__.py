"""Providers of models, one module each behind one protocol."""
