"""The pages of the console: a reader for the data of each page, and a pure function that builds its view."""
