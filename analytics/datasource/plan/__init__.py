"""The driver's part: where logs end, ranges of queues and parts of logs, the tasks of a query."""
