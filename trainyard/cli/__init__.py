"""The program `trainyard`: looks, and changes nothing. A module for each command."""
