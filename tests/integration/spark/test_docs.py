"""The examples of docs/spark.md, run one after the other as a reader would."""

import random
import re
from pathlib import Path

import pytest
from unit.storage.kit import SetClock, open_store

from integration.spark.kit import wait_until
from pyritemq.spark import latest_offsets
from pyritemq.storage import MessageToStore

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLOTS = ("per-minute.svg", "latency.svg", "tags.svg")


def make_demo(root):
    """Two hours of orders: a quiet start, a rush, and a broker that was slow for a while."""
    dice = random.Random(11)
    clock = SetClock()
    store = open_store(root, clock, commit_log_file_size=1 << 20)
    for minute in range(120):
        rush = 4 if 50 <= minute < 75 else 1
        for _ in range(dice.randint(15, 25) * rush):
            clock.ms += 60_000 // (25 * rush)
            waited = int(dice.expovariate(1 / (40 if 60 <= minute < 65 else 4)))
            tag = dice.choices((b"new", b"paid", b"sent", b"returned"), (50, 30, 17, 3))[0]
            order = MessageToStore(
                b"Orders", dice.randrange(4), b"{}", b"TAGS\x01%s\x02" % tag,
                born_timestamp=clock.ms - waited,
            )  # fmt: skip
            store.put_batch([order])
    store.close()


def test_the_examples_run_and_make_the_plots(spark, live, tmp_path, monkeypatch, capsys):
    running, store = live
    make_demo(tmp_path / "demo")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        code = block.replace("127.0.0.1:9876", running.namesrv).replace("./store", str(store))
        code = code.replace('"./', f'"{tmp_path}/')  # the JVM was started in another folder
        if "latest_offsets" in code:  # a reader takes longer than the second until this holds
            wait_until(
                lambda: sum(latest_offsets(str(store)).get("Orders", {}).values()) == 10_000,
                "the queues are not written",
            )
        exec(compile(code, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "| new| 3334|" in shown
    assert "10000 messages; 0 to go" in shown
    assert shown.endswith("10000\n10000\n")
    for name in PLOTS:
        assert (tmp_path / name).read_text() == (PAGE.parent / "spark" / name).read_text(), name
