"""What a query asks for: options, topics and queues, bounds, filters, tables and their columns."""
