"""A throw-away server for tests; its public name is `pyritemq.testing` (the folder `public`).

Sits on top of `lifecycle` and nothing in the server imports it.
"""
