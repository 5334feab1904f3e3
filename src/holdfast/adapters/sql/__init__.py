"""What the stores in SQL databases share: the statements that every dialect understands."""
