"""Parts of speech trainings: signals, lists of recordings, and decoding."""
