"""Order infos: counts, blocks, and the file that Java 5.5.0 writes (2026-11-18)."""

from pyritemq.server.broker.pop.allocation import (
    Queue,
    allocate_to_pop,
    allocate_to_pull,
    averagely,
    by_circle,
)
from pyritemq.server.broker.pop.order_info import ILLEGAL, STALE, OrderInfoTable
from pyritemq.storage.tables import JsonTable

KEY = ("T", "G", 0)
NOW = 1_795_022_276_408
JAVA_FILE = (
    b'{\n\t"orderInfoCount":1,\n\t"orderedConsumptionLevel":"QUEUE",\n\t"table":{\n\t\t"T@G":{'
    b'\n\t\t\t0:{\n\t\t\t\t"cm":1,\n\t\t\t\t"i":60000,\n\t\t\t\t"l":1795022276408,'
    b'\n\t\t\t\t"o":[5,1,3],\n\t\t\t\t"oc":{\n\t\t\t\t\t5:1,\n\t\t\t\t\t6:1,\n\t\t\t\t\t8:1'
    b'\n\t\t\t\t},\n\t\t\t\t"ot":{\n\t\t\t\t\t6:1700000099000\n\t\t\t\t},'
    b'\n\t\t\t\t"popTime":1700000000001\n\t\t\t}\n\t\t}\n\t}\n}'
)


def table(tmp_path, now_ms=lambda: NOW):
    file = JsonTable(tmp_path / "consumerOrderInfo.json")
    return OrderInfoTable(file, now_ms=now_ms, is_known=lambda key: key[1] != "Gone")


def pop(orders, pop_time, *, attempt_id=None, key=KEY):
    return orders.update(
        key, [5, 6, 8], attempt_id=attempt_id, pop_time=pop_time, invisible_time=60_000
    )


def no_commit(offset):
    pass


def test_the_file_is_javas_byte_for_byte_and_read_back(tmp_path):
    orders = table(tmp_path)
    assert pop(orders, 1_700_000_000_000, attempt_id="att") == ["0 0 0"]
    counts = pop(orders, 1_700_000_000_001)
    assert counts == ["0 qo0%5 1", "0 qo0%6 1", "0 qo0%8 1", "0 0 1"]
    orders.set_visible(KEY, 6, pop_time=1_700_000_000_001, visible_ms=1_700_000_099_000)
    orders.ack(KEY, 5, pop_time=1_700_000_000_001, commit=no_commit)
    pop(orders, 1, key=("T", "Gone", 0))
    orders.persist()
    path = tmp_path / "consumerOrderInfo.json"
    assert path.read_bytes() == JAVA_FILE
    again = table(tmp_path)
    again.load()
    again.set_visible(KEY, 6, pop_time=1_700_000_000_001, visible_ms=1_700_000_099_000)
    again.persist()
    assert path.read_bytes() == JAVA_FILE


def test_acks_commit_the_first_that_is_not_acked(tmp_path):
    orders = table(tmp_path)
    pop(orders, NOW)
    committed = []

    def ack(offset, pop_time=NOW):
        return orders.ack(KEY, offset, pop_time=pop_time, commit=committed.append)

    assert [ack(6), ack(5), ack(8)] == [5, 8, 9]
    assert committed == [5, 8, 9]
    assert (ack(7), ack(8, NOW - 1)) == (ILLEGAL, STALE)
    assert committed == [5, 8, 9]


def test_a_block_ends_with_the_invisible_time_of_each_message(tmp_path):
    now = NOW
    orders = table(tmp_path, lambda: now)
    pop(orders, NOW, attempt_id="a")
    assert orders.is_blocked(KEY, "b", 60_000)
    assert not orders.is_blocked(KEY, "a", 60_000)
    assert orders.blocked() == [KEY]
    for offset in (5, 6):
        orders.ack(KEY, offset, pop_time=NOW, commit=no_commit)
    orders.set_visible(KEY, 8, pop_time=NOW, visible_ms=NOW + 10)
    now += 10
    assert not orders.is_blocked(KEY, "b", 60_000)
    assert orders.free_at(KEY) is None


QUEUES = [Queue("T", broker, queue_id) for broker in "ab" for queue_id in range(4)]


def test_queues_to_pull_are_shared_out_evenly():
    clients = ["x", "y", "z"]
    for strategy in (averagely, by_circle):
        shares = [allocate_to_pull(strategy, QUEUES, clients, client) for client in clients]
        assert sorted(queue for share in shares for queue in share) == QUEUES
        assert [len(share) for share in shares] == [3, 3, 2]
    assert allocate_to_pull(averagely, QUEUES, clients, "stranger") == []
    assert allocate_to_pull(averagely, QUEUES[:2], clients, "z") == []


def test_queues_to_pop_are_shared_with_the_clients_behind():
    clients = [f"c{n}" for n in range(8)]
    everything = [Queue("T", "a", -1), Queue("T", "b", -1)]
    assert allocate_to_pop(averagely, QUEUES, clients, "c0", 0) == everything
    assert allocate_to_pop(averagely, QUEUES, clients, "c0", 7) == everything
    assert allocate_to_pop(averagely, QUEUES, clients, "c7", 1) == [QUEUES[7], QUEUES[0]]
    many = [f"c{n:02}" for n in range(20)]
    assert allocate_to_pop(averagely, QUEUES, many, "c09", 1) == [QUEUES[1]]
