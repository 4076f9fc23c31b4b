"""Long text on its way through history, made small."""

import base64
import bz2


def packed(data: bytes) -> str:
    """Compressed (bzip2) and in base85: a fifth less than zlib and base64 need."""
    return base64.b85encode(bz2.compress(data)).decode()


def unpacked(text: str) -> bytes:
    """What `packed` was given."""
    return bz2.decompress(base64.b85decode(text))
