"""One run at a time: a lock of the machine, and a lease in the cluster. docs/adr/0014-locks.md explains both."""
