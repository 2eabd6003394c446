"""`used=True` tells users what has an effect here, so it has to be true."""

import re
from pathlib import Path

from pyritemq.compat.broker_conf import BrokerConfig
from pyritemq.compat.namesrv_conf import NamesrvConfig

ROOT = Path(__file__).parents[3]
TABLES = [NamesrvConfig.KEYS, BrokerConfig.KEYS]
FLAGGED = {name for table in TABLES for name, declared in table.items() if declared.used}
KNOWN = {name for table in TABLES for name in table}


def read_attributes():
    """Names that the server, or a derived property of a configuration, reads off a `config`."""
    found = set()
    for path in (ROOT / "server").rglob("*.py"):
        found.update(re.findall(r"(?<=config\.)[a-z]\w+", path.read_text()))
    for path in (ROOT / "compat").glob("*_conf.py"):
        found.update(re.findall(r"(?<=self\.)[a-z]\w+", path.read_text()))
    return found & KNOWN


def test_keys_are_flagged_exactly_if_something_reads_them():
    read = read_attributes()
    assert sorted(FLAGGED - read) == [], "flagged used=True but nothing reads them"
    assert sorted(read - FLAGGED) == [], "read, so flag them used=True in compat/conf"
