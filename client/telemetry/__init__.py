"""Spans of OpenTelemetry about what clients send, receive and process."""
