"""Recordings, and the comparison of two servers by what they answer."""

from __future__ import annotations

import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pyritemq.conformance import recording, replay
from pyritemq.conformance.recording import Exchange, Recorder, RecordingError, Said
from pyritemq.protocol.command import Command
from pyritemq.protocol.frames import FrameDecoder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def answering(**fields: str) -> Iterator[str]:
    """A server that answers everything with the same fields; gives its address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            decoder = FrameDecoder()
            while data := self.request.recv(65536):
                for command in decoder.feed(data):
                    body = b'{"b":[2,1],"timestamp":%d}' % len(fields["offset"])
                    reply = Command(
                        0, opaque=command.opaque, flag=1, ext_fields=dict(fields), body=body
                    )
                    self.request.sendall(reply.encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def exchange(number: int = 1, flag: int = 0) -> Exchange:
    return Exchange(number, "broker-a", Said(9999, {"at": "10.0.0.1:1"}, "00ff", flag=flag))


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    recorder = Recorder()
    judge = recorder.judge("broker-a")
    request = Command(11, ext_fields={"topic": "T"}, body=b"\x00\xff")
    assert judge.request(request) is request
    judge.reply(request, Command(0, flag=1, remark="fine"))
    judge.request(Command(12, flag=2))
    path = tmp_path / "talk.jsonl"
    recording.write(path, recorder.exchanges(), {"broker-a": "h:1"})
    exchanges, addresses = recording.read(path)
    assert exchanges == recorder.exchanges()
    assert addresses == {"broker-a": "h:1"}
    assert [one.reply.remark if one.reply else None for one in exchanges] == ["fine", None]


@pytest.mark.parametrize("text", ["", "no json\n", '{"addresses": {"a": "b"}}\n{"number": 1}\n'])
def test_what_is_no_recording_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "talk.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingError):
        recording.read(path)


def replayed(first: dict[str, str], second: dict[str, str], *more: Exchange) -> replay.Replayed:
    with answering(**first) as one, answering(**second) as two:
        targets = [replay.Target("x", {"broker-a": address}) for address in (one, two)]
        exchanges = [exchange(), exchange(2, flag=2), *more]
        return replay.replay(exchanges, {"broker-a": "10.0.0.1:1"}, *targets)


def compared(first: dict[str, str], second: dict[str, str]) -> tuple[int, list[str]]:
    found = replayed(first, second)
    return found.compared, [difference.name for difference in found.differences]


def test_equal_replies_have_no_difference_and_volatile_fields_do_not_count() -> None:
    same = {"offset": "5"}
    assert compared(same, same) == (1, [])
    assert compared({**same, "msgId": "1"}, {**same, "msgId": "2"}) == (1, [])


def test_each_field_that_differs_or_is_absent_is_named() -> None:
    found = compared({"offset": "5", "more": "x"}, {"offset": "66"})
    assert found == (1, ["extFields.more", "extFields.offset"])


def test_what_both_agree_on_is_kept_once_of_each_kind_with_the_second_reply() -> None:
    found = replayed({"offset": "5", "msgId": "1"}, {"offset": "5", "msgId": "2"}, exchange(3))
    assert [one.number for one in found.agreed] == [1, 3]
    (kept,) = replay.fixtures(found.agreed)
    assert kept.reply is not None
    assert (kept.number, kept.reply.fields["msgId"]) == (1, "2")
    assert replayed({"offset": "5"}, {"offset": "66"}).agreed == []
