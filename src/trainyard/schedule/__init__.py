"""Scheduled runs: the revision that a timer runs, its session, and the notifications about it."""
