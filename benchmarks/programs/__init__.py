"""Whole processes that measurements start."""
