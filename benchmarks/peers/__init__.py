"""The same thousand steps under Holdfast and under others, each in an environment of its own."""
