"""Reading a topic for ``consume``: where to begin and end, in which order, what to print."""
