"""The server name in a TLS ClientHello, read without answering it (RFC 8446, RFC 6066)."""

from __future__ import annotations

_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_MAX_RECORD = 16 * 1024

ALERT_ACCESS_DENIED = b"\x15\x03\x01\x00\x02\x02\x31"
"""A fatal access_denied alert, so that a client says more than "connection closed"."""


class NotClientHello(Exception):
    """The bytes are no well-formed ClientHello."""


class _Cursor:
    """Reads length-prefixed fields and never past the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise NotClientHello("a field is cut short")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def block(self, width: int) -> _Cursor:
        """A field whose length stands before it in `width` bytes."""
        return _Cursor(self.take(self.number(width)))

    @property
    def rest(self) -> bytes:
        return self._data[self._at :]


def hello_in(data: bytes) -> bytes | None:
    """The body of the ClientHello at the start of a stream, or None when more bytes are needed.

    The message may be spread over several records.

    Raises:
        NotClientHello: what has come can't become one.
    """
    message = bytearray()
    at = 0
    while True:
        header = data[at : at + 5]
        if header[:1] not in (b"", bytes([_HANDSHAKE])) or header[1:2] not in (b"", b"\x03"):
            raise NotClientHello("not a TLS handshake record")
        if len(header) < 5:
            return None
        length = int.from_bytes(header[3:5], "big")
        if not 0 < length <= _MAX_RECORD:
            raise NotClientHello("a record of impossible length")
        piece = data[at + 5 : at + 5 + length]
        message += piece
        if message and message[0] != _CLIENT_HELLO:
            raise NotClientHello("not a ClientHello")
        if len(message) >= 4:
            size = int.from_bytes(message[1:4], "big")
            if len(message) >= 4 + size:
                return bytes(message[4 : 4 + size])
        if len(piece) < length:
            return None
        at += 5 + length


def server_name(hello: bytes) -> str | None:
    """The host name in the hello's server_name extension, lower-cased; None without one.

    Raises:
        NotClientHello: malformed, or more than one name.
    """
    body = _Cursor(hello)
    body.take(2 + 32)  # legacy_version, random
    body.block(1)  # legacy_session_id
    body.block(2)  # cipher_suites
    body.block(1)  # legacy_compression_methods
    if not body.rest:
        return None
    extensions = body.block(2)
    if body.rest:
        raise NotClientHello("bytes after the extensions")
    name: str | None = None
    while extensions.rest:
        kind = extensions.number(2)
        content = extensions.block(2)
        if kind != _SERVER_NAME:
            continue
        if name is not None:
            raise NotClientHello("two server_name extensions")
        name = _only_name(content)
    return name


def _only_name(content: _Cursor) -> str:
    names = content.block(2)
    kind = names.number(1)
    text = names.block(2).rest
    if content.rest or names.rest or kind != 0 or not text:
        raise NotClientHello("server_name does not hold exactly one host name")
    try:
        return text.decode("ascii").lower()
    except UnicodeDecodeError as error:
        raise NotClientHello("server_name is not ASCII") from error
