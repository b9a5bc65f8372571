"""What is handed out, to whom, from where; waiting for more."""
