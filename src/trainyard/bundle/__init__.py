"""The bundle: all artefacts of a site, built or fetched from one lock file into a content-addressed store."""
