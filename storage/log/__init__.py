"""The commit log for reading: its bytes, its records, and which files may be deleted."""
