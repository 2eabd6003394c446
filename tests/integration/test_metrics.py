"""What each lane does can be seen from outside."""

import trio

from integration.wire import send
from pyritemq.server.listener import bind
from pyritemq.server.metrics import render_lanes, serve_metrics


async def get(port, path):
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        answer = b""
        while data := await stream.receive_some(65536):
            answer += data
    return answer.decode()


async def test_lanes_show_depth_waiting_and_serving(server, nursery):
    wire = await server.connect()
    for _ in range(3):
        await send(wire, "Topic", b"x")
    sock = bind("127.0.0.1", 0)
    lanes = {"broker": server.broker.server.lanes, "namesrv": server.namesrv.server.lanes}
    nursery.start_soon(serve_metrics, sock, lambda: render_lanes(lanes))
    answer = await get(sock.getsockname()[1], "/metrics")
    assert answer.startswith("HTTP/1.1 200 OK")
    metrics = dict(line.rsplit(" ", 1) for line in answer.splitlines() if "{" in line)
    of_send = '{service="broker",lane="send"}'
    assert float(metrics["pyritemq_lane_requests_total" + of_send]) == 3
    assert float(metrics["pyritemq_lane_serve_seconds_total" + of_send]) > 0
    assert "pyritemq_lane_queue_depth" + of_send in metrics
    assert "pyritemq_lane_wait_seconds_total" + of_send in metrics
    assert (await get(sock.getsockname()[1], "/")).startswith("HTTP/1.1 404 ")
    nursery.cancel_scope.cancel()
