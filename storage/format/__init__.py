"""The bytes of a RocketMQ 4.9 store: pure functions between bytes and values.

Nothing here reads a file or a clock, or starts a thread. All numbers on disk are big-endian and
signed, as Java's ByteBuffer writes them. NumPy is imported by ``column_pure`` and ``index_many``
only, so a process that handles single messages never loads it. FORMAT.md draws the bytes.
"""
