"""ClientHellos: real ones from the ssl module, and hand-made ones."""

import ssl


def real_hello(name: str | None) -> bytes:
    """What OpenSSL sends first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake ended without a server")


def name_list(*names: bytes, kind: int = 0) -> bytes:
    """The content of a server_name extension."""
    entries = b"".join(bytes([kind]) + len(name).to_bytes(2, "big") + name for name in names)
    return len(entries).to_bytes(2, "big") + entries


def hello_body(*extensions: tuple[int, bytes]) -> bytes:
    """A ClientHello's body with the given extensions."""
    block = b"".join(
        kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
        for kind, content in extensions
    )
    fixed = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    return fixed + (len(block).to_bytes(2, "big") + block if extensions else b"")


def records(body: bytes, size: int = 16384, kind: int = 1) -> bytes:
    """The body as a handshake message in records of at most `size` bytes."""
    message = bytes([kind]) + len(body).to_bytes(3, "big") + body
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(p).to_bytes(2, "big") + p for p in pieces)
