"""A broker in this process over one store folder: wiring, roles and timed services."""
