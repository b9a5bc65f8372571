"""What a client needs of a broker: requests, results and roles, one module a role."""
