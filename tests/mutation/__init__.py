"""Mutation testing: small faults put into modules one by one, and whether a test notices."""
