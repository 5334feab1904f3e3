"""Workflows on their way from one store to another."""
