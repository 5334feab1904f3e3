"""The tests, laid out as the package is: one room here for each room there."""
