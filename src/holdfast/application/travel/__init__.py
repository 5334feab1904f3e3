"""States at any point, and whether the events explain them."""
