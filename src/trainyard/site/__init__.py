"""The rules that an inventory has to keep."""
