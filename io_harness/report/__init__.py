"""A whole run as one document: gathered from its history, and written for people or programs."""
