from pyritemq.protocol.codes import LanguageCode, RequestCode, ResponseCode


def test_numbers_are_javas_at_both_ends_of_each_table() -> None:
    assert (min(RequestCode), max(RequestCode)) == (10, 200151)
    assert RequestCode.SEND_MESSAGE == 10
    assert RequestCode.BATCH_ACK_MESSAGE == 200151
    assert ResponseCode.SYSTEM_BUSY == 2
    assert ResponseCode.RPC_TIME_OUT == -1006
    assert ResponseCode.POLICY_NOT_EXIST == 3002
    assert LanguageCode.NODE_JS == 13


def test_no_two_names_share_a_number() -> None:
    for table in (RequestCode, ResponseCode, LanguageCode):
        assert len(table.__members__) == len(list(table))
