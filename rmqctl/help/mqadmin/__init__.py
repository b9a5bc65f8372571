"""mqadmin's commands (RocketMQ 4.9): names, options, and their counterparts here."""
