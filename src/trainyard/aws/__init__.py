"""AWS: calls with clear errors, waits as data, and the resources of EFS as plans."""
