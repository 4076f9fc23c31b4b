"""macOS' sandbox. Written from its documentation; not run on macOS yet."""
