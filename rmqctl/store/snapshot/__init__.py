"""Snapshots of stores, and stores of snapshots."""
