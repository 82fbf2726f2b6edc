"""Scheduled reprovisioning: find drift, report it, and repair it within limits."""
