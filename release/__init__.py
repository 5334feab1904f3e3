"""Makes what is released, and tries it where nothing else is: docs/releasing.md."""
