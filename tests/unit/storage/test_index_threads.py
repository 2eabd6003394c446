"""Builder, sender, queries, deletions at once: what was acknowledged is found, the rest is gone."""

import threading

from unit.storage.kit import kill, open_store, read_queue

from pyritemq.protocol.record import decode_record
from pyritemq.storage import MessageToStore

MESSAGES = 1500
BATCH = 5


def keyed(number, topic=b"T"):
    return MessageToStore(topic, 0, b"%d" % number, b"KEYS\x01k%d all\x02" % number)


class Background:
    """Calls something again and again in a thread until the block ends; pytest sees it fail."""

    def __init__(self, work):
        self._work = work
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._ended.is_set():
            self._work()

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()


def test_every_acknowledged_message_is_found_while_the_index_is_built(tmp_path):
    store = open_store(tmp_path, commit_log_file_size=1 << 16, index_items=300)
    acknowledged = []

    def query():
        if not acknowledged:
            return
        number = acknowledged[-1]
        found = store.query("T", f"k{number}", 9, begin=0, end=1 << 62)
        assert [decode_record(record, 0).body for record in found.records] == [b"%d" % number]
        newest = store.query("T", "all", 3, begin=0, end=1 << 62).records
        assert int(decode_record(newest[-1], 0).body) >= number

    with Background(lambda: store.index.catch_up(records_max=7)), Background(query):
        for start in range(0, MESSAGES, BATCH):
            store.put_batch([keyed(number) for number in range(start, start + BATCH)])
            acknowledged.append(start + BATCH - 1)
    store.index.catch_up()
    for number in range(0, MESSAGES, 100):
        assert len(store.query("T", f"k{number}", 9, begin=0, end=1 << 62).records) == 1
    store.close()


def test_topic_deleted_again_and_again_under_load_is_recovered_as_it_was(tmp_path):
    store = open_store(tmp_path, commit_log_file_size=1 << 16)

    with Background(lambda: store.delete_topics(["T"])), Background(store.housekeep):
        for start in range(0, MESSAGES, BATCH):
            batch = [keyed(number) for number in range(start, start + BATCH)]
            store.put_batch([*batch, keyed(start, b"Other")])
    store.put_batch([keyed(number) for number in range(3)])
    before = [
        [(r.body, r.queue_offset) for r in read_queue(store, topic)] for topic in ("T", "Other")
    ]
    assert len(before[1]) == MESSAGES // BATCH
    kill(store)
    store = open_store(tmp_path, commit_log_file_size=1 << 16)
    after = [
        [(r.body, r.queue_offset) for r in read_queue(store, topic)] for topic in ("T", "Other")
    ]
    assert after == before
    store.close()
