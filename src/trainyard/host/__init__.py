"""A Linux host: facts, files, packages, units, kernel, ports."""
