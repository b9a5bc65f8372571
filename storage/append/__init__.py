"""The put path: records, their units and keys are appended under the write lock, and synced.

See docs/internals/append.md.
"""
