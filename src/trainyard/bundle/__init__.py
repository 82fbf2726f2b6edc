"""The bundle: every artefact that a site needs, built or fetched from one lock file into a content-addressed store."""
