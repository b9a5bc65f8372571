"""Consumers that pull when they are asked to: PullConsumer, LitePullConsumer."""
