"""The push consumer: its pull loop, rebalance rules, queue locks and send-backs."""
