"""What every part stands on: errors, plans, programs, waits."""
