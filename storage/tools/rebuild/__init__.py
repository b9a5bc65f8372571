"""Making anew what follows from the log: consume queues and the key index."""
