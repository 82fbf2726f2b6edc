"""A training as objects of a cluster; run, followed and judged."""
