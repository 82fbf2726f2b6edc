"""Shared foundation of all packages: errors, plans, commands, waits."""
