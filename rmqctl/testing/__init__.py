"""Fixtures and helpers for tests of programs that use RocketMQ; see docs/testing.md.

``plugin`` is the plugin of pytest, which every project has that installs rmqctl beside pytest.
"""
