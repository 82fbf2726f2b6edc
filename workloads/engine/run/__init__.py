"""The folder of a run: checkpoints, metrics, and who may write there."""
