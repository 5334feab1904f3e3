"""The default store: a write-ahead journal, and plain files that a person can read."""
