"""The program `trainyard`: looks, and changes nothing but the logins that it makes. A module for each command."""
