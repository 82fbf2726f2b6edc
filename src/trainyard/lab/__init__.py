"""The lab: system containers that behave like servers, on their own network, on one machine."""
