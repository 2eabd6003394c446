"""How the server logs: events with key=value pairs, on standard error, one line each."""

import logging
import sys

FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def configure(level: str) -> None:
    """Send our events of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger("pyritemq")
    root.addHandler(handler)
    root.setLevel(level.upper())
    root.propagate = False
