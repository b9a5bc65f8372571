"""What the commands about topics, groups, brokers and settings plan and change."""
