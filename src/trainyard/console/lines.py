"""How much of a run's log and of a view is shown."""

LINE_BYTES = 8_192
"""The end of a line that is shown: people read no more of it, and 20 browsers would have to hold it."""
VIEW_DEPTH = -10
"""Where a view of ours begins, which is deeper."""
