"""Bytes to commands and back: RocketMQ's remoting wire format, sans-IO."""
