"""Work passed on from one session to the next."""
