"""Tools that the model may call, one module each behind one protocol."""
