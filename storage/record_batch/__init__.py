"""Records of the log by the thousand, as columns. Needs NumPy, so nothing quick imports it.

See docs/internals/fsck-repair.md.
"""
