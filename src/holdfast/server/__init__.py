"""The HTTP API and the dashboard over one store."""
