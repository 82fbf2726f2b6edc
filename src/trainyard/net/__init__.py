"""Network clients for a bare host, with the standard library only."""
