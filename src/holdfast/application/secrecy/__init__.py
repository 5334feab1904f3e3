"""Sealing what is stored, and the keys for that."""
