"""Access to a cluster's API server and its objects."""
