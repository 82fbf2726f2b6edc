"""Drift of a site: found, reported, and repaired within limits."""
