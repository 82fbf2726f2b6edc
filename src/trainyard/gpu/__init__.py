"""What GPUs a host has, and how they are, whoever is asked."""
