"""The import of a data set to a claim, before the training that reads it."""
