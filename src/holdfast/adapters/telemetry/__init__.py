"""Numbers and spans of a running program, for the tools that collect them."""
