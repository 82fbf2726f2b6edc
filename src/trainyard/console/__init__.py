"""The console: pages, live data and actions for trainings, with no rights of its own.

Every call to the API server is made with the token of the user who is logged in.
"""
