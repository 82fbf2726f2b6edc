"""Checks of a finished site, as functions of an observation, and the receipt."""
