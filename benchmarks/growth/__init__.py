"""How the cost of an operation grows with what the store holds: messages, queues, groups."""
