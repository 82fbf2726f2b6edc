"""The lab: system containers that behave like servers, on a network of their own, on one machine."""
