"""Fakes at the edge of the process: servers that speak a real protocol over a real socket."""
