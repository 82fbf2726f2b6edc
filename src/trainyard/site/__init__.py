"""Rules for an inventory."""
