"""Mending a damaged store (``rmqctl store repair``): a plan of steps, and carrying it out.

The planning needs NumPy, which is why nothing else of storage imports it.

See docs/internals/fsck-repair.md.
"""
