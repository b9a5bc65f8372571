"""The push consumer: its pull loop, rebalance rules, queue locks and send-backs.

See docs/internals/push-consumer.md.
"""
