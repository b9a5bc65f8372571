"""The roles of the port that the embedded broker plays, and its timed services."""
