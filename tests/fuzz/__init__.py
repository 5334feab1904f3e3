"""Fuzzing: every decoder that meets bytes from outside answers, or raises an error of ours."""
