"""What each contender does for one step; run by the python of its own environment."""
