"""The broker: its parts, its state and its handlers."""
