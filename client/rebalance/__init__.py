"""Which member of a group has which queues."""
