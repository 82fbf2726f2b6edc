"""Data sets: files of MNIST, records, and data in memory."""
