"""Messages: found, searched, counted."""
