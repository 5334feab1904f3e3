"""What only a real machine shows: mounted file systems, block devices, traced calls, memory, clocks."""
