"""Windows' job objects. Written from their documentation; not run on Windows yet."""
