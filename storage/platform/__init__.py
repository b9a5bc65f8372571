"""The seams to the operating system: each call that not every POSIX system has, a module a seam.

No other room names such a call; ``tests/checks/linux_names.py`` holds that. docs/platforms.md has
the table.
"""
