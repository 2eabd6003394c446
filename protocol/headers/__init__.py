"""Declared request and reply headers, one module per domain."""
