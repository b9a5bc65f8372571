"""``rmqctl store du`` and ``clean``: what fills the disk, and deleting what is old."""
