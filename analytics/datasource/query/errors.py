"""Errors of the data source that more than one module raises; they go to Spark."""

from __future__ import annotations


class OptionError(ValueError):
    """An option is unknown, missing, malformed, or without an effect."""


class DataLossError(Exception):
    """Data that a query was to read is gone."""


class DamagedError(Exception):
    """A message cannot be read whole; the error goes to Spark."""
