"""Bringing a data set onto a claim, before the training that reads it."""
