"""Going on when nothing can be made durable."""
