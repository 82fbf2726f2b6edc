"""State of a Linux host: facts, files, packages, units, kernel, ports."""
