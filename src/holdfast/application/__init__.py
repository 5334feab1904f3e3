"""What happens: use cases over the domain and the ports, free of any technology."""
