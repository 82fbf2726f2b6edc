"""Fetch and verify vendors' artefacts."""
