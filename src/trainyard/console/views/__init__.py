"""The console's pages as pure functions: what a page has to read, and what it shows of the answers."""
