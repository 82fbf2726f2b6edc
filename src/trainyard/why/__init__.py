"""Why a run waits, is silent or failed: one snapshot of the cluster, and rules over it."""
