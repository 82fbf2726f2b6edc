"""Flags, model and data shared by `speech_ps` and `speech_gpu`."""
