"""Hiding secrets before anything is written."""
