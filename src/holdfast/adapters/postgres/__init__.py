"""A store in PostgreSQL: a server that a team runs, or one that is started on demand."""
