"""What can be wrong with bytes from a peer.

    ProtocolError
    ├── FrameError          bad length or serialisation type: close the connection
    ├── HeaderSyntaxError   the header is not what its serialisation type says: close the connection
    ├── RecordError         a message record, its properties or a batch body does not parse
    └── FieldError          a well-formed request with a wrong ext field: answer it with ``remark``
        ├── MissingField
        └── InvalidField

Nothing else is ever raised by this room for what a peer sent.
"""


class ProtocolError(Exception):
    """The peer broke the wire format."""


class FrameError(ProtocolError):
    """A frame whose length word or type word cannot be true."""


class HeaderSyntaxError(ProtocolError):
    """A command header that does not parse."""


class RecordError(ProtocolError):
    """A message record, property string or batch body that does not parse."""


class FieldError(ProtocolError):
    """A declared header field is wrong; ``remark`` is the text for the reply."""

    def __init__(self, wire_name: str, remark: str) -> None:
        super().__init__(remark)
        self.wire_name = wire_name
        self.remark = remark


class MissingField(FieldError):  # noqa: N818 - says what is wrong
    """A required field is not there; the remark is Java's (RemotingCommand, 5.5.0)."""

    def __init__(self, wire_name: str) -> None:
        super().__init__(wire_name, f"the custom field <{wire_name}> is null")


class InvalidField(FieldError):  # noqa: N818 - says what is wrong
    """A field's text is not of the declared type."""

    def __init__(self, wire_name: str, text: str) -> None:
        super().__init__(wire_name, f"the custom field <{wire_name}> is invalid: {text[:64]!r}")
