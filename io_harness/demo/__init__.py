"""The demo: a small project with a bug, and the recorded conversation in which it is mended."""
