"""A payload codec that compresses what goes into Temporal's history."""

from collections.abc import Sequence

import zstandard
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

_ENCODING = b"binary/zstd"
_LEAST_BYTES = 512
_MOST_BYTES = 64 * 1024 * 1024


class ZstdCodec(PayloadCodec):
    """Compresses payloads with Zstandard (RFC 8878), each whole, with its metadata.

    Payloads under 512 bytes, and those that don't get smaller, stay readable as they are. What is not
    compressed is decoded as it is, so that runs of the time before the codec can still be read; the
    other way round, every client, worker and codec server of the namespace needs the codec.
    """

    def __init__(self, level: int = 3) -> None:
        """
        Args:
            level: Of compression, from 1 (fast) to 22 (small).

        Raises:
            ValueError: the level is out of range.
        """
        if not 1 <= level <= zstandard.MAX_COMPRESSION_LEVEL:
            raise ValueError(
                f"level must be from 1 to {zstandard.MAX_COMPRESSION_LEVEL}, not {level}"
            )
        self._level = level

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._encoded(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """
        Raises:
            zstandard.ZstdError: a payload is damaged, or has no size in its header.
            ValueError: a payload would have more than 64 MiB, far over what the server takes.
        """
        return [_decoded(payload) for payload in payloads]

    def _encoded(self, payload: Payload) -> Payload:
        if payload.ByteSize() < _LEAST_BYTES:
            return payload
        compressor = zstandard.ZstdCompressor(level=self._level)  # not safe to share among threads
        encoded = Payload(
            metadata={"encoding": _ENCODING}, data=compressor.compress(payload.SerializeToString())
        )
        return encoded if encoded.ByteSize() < payload.ByteSize() else payload


def _decoded(payload: Payload) -> Payload:
    if payload.metadata.get("encoding") != _ENCODING:
        return payload
    size = zstandard.frame_content_size(payload.data)
    if size > _MOST_BYTES:
        raise ValueError(f"a compressed payload would have {size:,} bytes; at most {_MOST_BYTES:,}")
    return Payload.FromString(zstandard.ZstdDecompressor().decompress(payload.data))
