"""The tools that a model may call, and the activity that runs one call."""
