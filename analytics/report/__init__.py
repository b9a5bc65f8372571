"""The report over one or many stores: scanned, counted, put together.

See docs/internals/report.md.
"""
