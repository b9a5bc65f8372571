"""Consumers that pull on request: PullConsumer, LitePullConsumer."""
