"""The conformance suite: cases that any RocketMQ-compatible server can be run against."""
