"""init and join of one host."""
