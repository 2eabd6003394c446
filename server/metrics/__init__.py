"""What /metrics shows: RocketMQ 5's metrics by its names and labels, and our own.

Nothing here counts: numbers are read from where they are kept anyway, when somebody asks.
"""
