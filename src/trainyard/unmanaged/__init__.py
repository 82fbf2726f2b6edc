"""Cluster objects that the site does not manage: unknown nodes, foreign rights, and open doors."""
