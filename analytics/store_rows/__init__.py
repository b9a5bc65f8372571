"""Rows of whole stores: what waits, what failed, what is set, and what was changed.

They are those of the commands (``retry agenda --each``, ``retry browse``, ``dlq browse``,
``group list``, ``topic list``, ``audit list``), for all groups at once, and read by the same rules
of the broker. See docs/spark.md.
"""
