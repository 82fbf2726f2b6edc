"""Checks of a finished site as functions of what was read, and the receipt."""
