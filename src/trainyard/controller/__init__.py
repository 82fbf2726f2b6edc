"""The host of a schedule: its Python environment, its repository, and the credentials of its service."""
