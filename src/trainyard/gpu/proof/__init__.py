"""`gpu-proof`: prove in stages that the GPUs of a host, its driver and its programs work together."""
