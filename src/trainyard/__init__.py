"""The code of trainyard. Hosts receive only the modules that library/ imports."""
