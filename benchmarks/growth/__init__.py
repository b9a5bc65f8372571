"""How the cost of an operation grows with the size of the store: messages, queues, groups."""
