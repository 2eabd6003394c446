"""Appends with a ConsumeQueueExt unit for each message: enableConsumeQueueExt, off by default.

The send lane's. The plain appender asks for a tags code where a message has none; so each message
is given none while it is appended, and what is answered is the address of its ext unit. A store
without ext units runs none of this.
"""

from collections.abc import Sequence

from pyritemq.storage.appender import Appender
from pyritemq.storage.consume_queue import ConsumeQueue
from pyritemq.storage.consume_queue_ext import ConsumeQueueExts
from pyritemq.storage.derive import is_in_queue
from pyritemq.storage.messages import MessageToStore, PutResult


class ExtAppender(Appender):
    """An Appender whose ConsumeQueue units name ext units."""

    exts: ConsumeQueueExts

    def append(self, messages: Sequence[MessageToStore]) -> list[PutResult]:
        codes = [message.tags_code for message in messages]
        for message in messages:
            message.tags_code = None
        try:
            results = super().append(messages)
        except BaseException:
            self.exts.roll_back()
            raise
        finally:
            for message, code in zip(messages, codes, strict=True):
                message.tags_code = code
        self.exts.publish()
        return results

    def _write(
        self, messages: Sequence[MessageToStore], touched: dict[ConsumeQueue, None], timestamp: int
    ) -> tuple[list[PutResult], int]:
        written = super()._write(messages, touched, timestamp)
        self.exts.write()
        return written

    def _derive_tags_code(
        self, queue: ConsumeQueue, message: MessageToStore, timestamp: int
    ) -> int:
        code = super()._derive_tags_code(queue, message, timestamp)
        if not is_in_queue(message.sys_flag):
            return code
        return self.exts.put(queue, code, timestamp, message.topic, message.properties)
