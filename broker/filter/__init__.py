"""SQL92 expressions over a message's properties (the filter module of RocketMQ 4.9)."""
