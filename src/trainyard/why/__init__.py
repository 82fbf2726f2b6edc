"""Find out why a run waits, makes no steps or failed: rules evaluate one snapshot of the cluster."""
