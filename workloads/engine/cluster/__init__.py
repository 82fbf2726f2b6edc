"""Processes of a run: who belongs to it, which devices they have, and how they end."""
