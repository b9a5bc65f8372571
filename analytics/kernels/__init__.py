"""From a range of a queue to rows that can be added up: NumPy, the same for every engine.

See docs/internals/report.md.
"""
