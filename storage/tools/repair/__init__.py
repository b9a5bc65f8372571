"""Repairing a damaged store (``rmqctl store repair``): a plan of steps, and its execution.

The planning needs NumPy, so no other package of storage imports it.

See docs/internals/fsck-repair.md.
"""
