"""What can be asked over HTTP, one module for each thing that is asked about."""
