"""The logic of the modules in library/, by domain."""
