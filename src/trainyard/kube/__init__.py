"""The API server of a cluster, and objects in it."""
