"""The parts of the port (broker.api.broker): one module a role, with its requests and results."""
