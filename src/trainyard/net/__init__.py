"""Questions to servers from a bare host, with the standard library only."""
