"""Changes and their authors, from the change journal."""
