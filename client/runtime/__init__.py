"""What clients of one id share: connections, routes, timers, the pull and rebalance threads."""
