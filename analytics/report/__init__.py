"""The report over one or many stores: scanned, counted, combined.

See docs/internals/report.md.
"""
