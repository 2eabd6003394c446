"""One thin driver for each client library, and the Python side of the protocol they speak."""
