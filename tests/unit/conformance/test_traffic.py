"""Lines as the official examples print them, read back."""

from __future__ import annotations

from pyritemq.conformance.traffic import Message, by_queue, received_messages, sent_messages

QUEUE = "messageQueue=MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=2]"
SENT = f"SendResult [sendStatus=SEND_OK, msgId=AB01, offsetMsgId=CD01, {QUEUE}, queueOffset=7]"
BATCH = SENT.replace("AB01", "AB01,AB02").replace("CD01", "CD01,CD02")
RECEIVED = (
    "ConsumeMessageThread_g_1 Receive New Messages: [MessageExt [brokerName=broker-a, queueId=2, "
    "storeSize=275, queueOffset=7, sysFlag=0, bornTimestamp=1, bornHost=/127.0.0.1:49460, "
    "storeTimestamp=2, storeHost=/127.0.0.1:20911, msgId=CD01, commitLogOffset=356102, "
    "bodyCRC=198614610, reconsumeTimes=0, preparedTransactionOffset=0, toString()=Message{"
    "topic='TopicTest', flag=0, properties={MIN_OFFSET=0, UNIQ_KEY=AB01, TAGS=TagA}, "
    "body=[72], transactionId='null'}]] \n"
)


def test_what_was_sent_equals_what_was_received():
    assert sent_messages(SENT) == received_messages(RECEIVED)
    assert sent_messages(SENT) == [Message("AB01", "CD01", "TopicTest", 2, 7)]


def test_batch_result_is_taken_apart_with_offsets_side_by_side():
    assert [(m.key, m.message_id, m.queue_offset) for m in sent_messages(BATCH)] == [
        ("AB01", "CD01", 7),
        ("AB02", "CD02", 8),
    ]


def test_send_that_was_not_stored_does_not_count():
    assert sent_messages(SENT.replace("SEND_OK", "FLUSH_DISK_TIMEOUT")) == []


def test_list_of_several_messages_gives_each_of_them_in_order():
    second = RECEIVED.replace("queueOffset=7", "queueOffset=8").replace("AB01", "AB02")
    assert by_queue(received_messages(RECEIVED + second)) == {2: [7, 8]}
