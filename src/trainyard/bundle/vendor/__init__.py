"""The vendors' own artefacts, fetched and checked."""
