"""Power cuts under a real file system."""
