"""The terminal: commands, output and completion. Only here does the project print or exit."""

__version__ = "0.1.0"
