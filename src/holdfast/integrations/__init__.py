"""Under frameworks that people already use: one file for each, which translates and does nothing else."""
