"""Scheduled reprovisioning: drift found, reported, and repaired within limits."""
