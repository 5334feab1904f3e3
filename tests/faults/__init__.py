"""Real faults: file systems that are full, limits and rights of the operating system."""
