"""What people and programs are shown of a store: readings of it, made in one place for every face."""
