"""PyriteMQ and the real RocketMQ side by side, driven by the official benchmark classes.

Run it from the root of the checkout: python -m bench --help. Method and figures are explained in
docs/performance.md.
"""
