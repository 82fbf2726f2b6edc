"""The program `trainyard`, with a module for each command. Most commands only read a site."""
