"""What a client needs of a broker: requests, results, roles and the reason of a failure."""
