"""Giving people what is theirs, and erasing it."""
