"""AWS: calls that name themselves in their errors, waits as data, and the resources of EFS as plans."""
