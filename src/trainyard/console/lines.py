"""Limits for the lines of a log and the depth of a view."""

LINE_BYTES = 8_192
"""Maximum bytes of a shown line: longer lines are not readable, and 20 browsers would have to hold them."""
VIEW_DEPTH = -10
"""Start depth for views, which are nested deeper than the limit of `plain` allows."""
