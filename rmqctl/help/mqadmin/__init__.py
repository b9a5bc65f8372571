"""mqadmin's commands (RocketMQ 4.9): their names and options, and what stands for them here."""
