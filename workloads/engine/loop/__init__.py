"""The training loop: steps, the chief's schedule, state and evaluation."""
