"""Programs that are copied into an empty environment: they know the standard library and Holdfast only."""
