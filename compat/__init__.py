"""What is Java's rather than RocketMQ's."""
