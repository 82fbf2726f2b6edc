"""One builder for each kind of artefact."""
