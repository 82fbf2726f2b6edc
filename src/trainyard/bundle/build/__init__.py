"""Builders, one for each kind of artefact."""
