"""The console: pages, live data and actions for trainings, without rights of its own.

Every call to the API server uses the token of the logged-in user.
"""
