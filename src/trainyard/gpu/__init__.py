"""The GPUs of a host and their health, from each available source."""
