"""The key index: its files read and written, and keys that no file holds yet."""
