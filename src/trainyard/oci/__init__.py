"""Pack code folders as single-layer OCI images, without a builder."""
