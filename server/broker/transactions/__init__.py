"""Transactions: halves that wait for their producer's decision, and the questions that get it."""
