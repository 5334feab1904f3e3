"""Holdfast beside its peers: the same states, the same disk, one run, each in an environment of its own."""
