"""Rules for differences between a cluster and its site that no role repairs. They need no connection."""
