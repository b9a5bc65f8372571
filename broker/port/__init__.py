"""The parts of the port (broker.api): one module a role, with its requests and results."""
