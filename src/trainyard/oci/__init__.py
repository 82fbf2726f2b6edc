"""Folders of code as OCI images of one layer, packed without a builder."""
