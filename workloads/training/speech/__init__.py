"""What `speech_ps` and `speech_gpu` have in common: flags, model and data."""
