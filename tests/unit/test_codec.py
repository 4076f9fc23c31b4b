"""The codec gives back what it got, and compresses only what gets smaller."""

import os

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload

from io_harness.codec import ZstdCodec


def payload(data: bytes) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", "x": b"y"}, data=data)


@given(st.lists(st.builds(lambda b, n: payload(b * n), st.binary(), st.integers(0, 200))))
async def test_what_is_decoded_is_what_was_encoded(payloads: list[Payload]) -> None:
    codec = ZstdCodec()
    assert await codec.decode(await codec.encode(payloads)) == payloads


async def test_text_gets_smaller_and_its_metadata_goes_along() -> None:
    text = payload(b'{"text": "the same words again"}' * 200)
    (encoded,) = await ZstdCodec().encode([text])
    assert encoded.metadata["encoding"] == b"binary/zstd"
    assert encoded.ByteSize() < text.ByteSize() / 10


@pytest.mark.parametrize("data", [b'"short"', os.urandom(2_000)], ids=["short", "random"])
async def test_what_would_not_get_smaller_stays(data: bytes) -> None:
    assert await ZstdCodec().encode([payload(data)]) == [payload(data)]


async def test_what_is_damaged_or_far_too_large_is_refused() -> None:
    (encoded,) = await ZstdCodec().encode([payload(b"words " * 1_000)])
    damaged = Payload(metadata=encoded.metadata, data=encoded.data[:-5])
    with pytest.raises(zstandard.ZstdError):
        await ZstdCodec().decode([damaged])
    bomb = zstandard.ZstdCompressor().compress(bytes(65 * 1024 * 1024))
    with pytest.raises(ValueError, match="at most"):
        await ZstdCodec().decode([Payload(metadata=encoded.metadata, data=bomb)])


def test_a_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="from 1 to 22, not 99"):
        ZstdCodec(level=99)
