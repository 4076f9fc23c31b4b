"""What is encrypted can be read with the key alone; what can't be read says why."""

import base64
import secrets
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload

from io_harness.codec import ZstdCodec
from io_harness.encryption import BadKey, CannotDecrypt, EncryptionCodec, Key, read_keys

OLD, NEW = Key("old", secrets.token_bytes(32)), Key("new", secrets.token_bytes(32))
TEXT = b'{"goal": "something that nobody else should read"}'


def payload(data: bytes = TEXT) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", "x": b"y"}, data=data)


@given(st.lists(st.builds(payload, st.binary())), st.booleans())
async def test_what_is_decrypted_is_what_was_encrypted(
    payloads: list[Payload], compressed: bool
) -> None:
    codec = EncryptionCodec([NEW], inner=ZstdCodec() if compressed else None)
    assert await codec.decode(await codec.encode(payloads)) == payloads


async def test_nothing_of_a_payload_is_readable_and_no_two_are_alike() -> None:
    codec = EncryptionCodec([NEW])
    one, two = await codec.encode([payload(), payload()])
    assert TEXT not in one.SerializeToString()
    assert b"json/plain" not in one.SerializeToString()
    assert one.metadata["encryption-key-id"] == b"new"
    assert one.data != two.data


async def test_after_a_rotation_old_payloads_can_still_be_read() -> None:
    before = await EncryptionCodec([OLD]).encode([payload()])
    rotated = EncryptionCodec([NEW, OLD])
    after = await rotated.encode([payload()])
    assert after[0].metadata["encryption-key-id"] == b"new"
    assert await rotated.decode([*before, *after, payload()]) == [payload()] * 3


async def test_a_missing_key_a_wrong_key_and_a_changed_payload_are_told_apart_from_text() -> None:
    encrypted = await EncryptionCodec([OLD]).encode([payload()])
    with pytest.raises(CannotDecrypt, match=r"encrypted with key 'old', and .* has only new"):
        await EncryptionCodec([NEW]).decode(encrypted)
    wrong = Key("old", NEW.secret)
    with pytest.raises(CannotDecrypt, match="another key than the one that encrypted it"):
        await EncryptionCodec([wrong]).decode(encrypted)
    for data in (encrypted[0].data[:-1] + b"\0", b"", encrypted[0].data[:5]):
        changed = Payload(metadata=encrypted[0].metadata, data=data)
        with pytest.raises(CannotDecrypt, match="the payload was changed"):
            await EncryptionCodec([OLD]).decode([changed])


def test_keys_are_read_from_variables_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", base64.b64encode(NEW.secret).decode())
    (tmp_path / "key").write_bytes(base64.b64encode(OLD.secret) + b"\n")
    assert read_keys(f"new=env:A_KEY, old=file:{tmp_path / 'key'}") == (NEW, OLD)
    assert NEW.secret.hex() not in repr(NEW)
    assert repr(NEW.secret) not in repr(NEW)


SECRET = base64.b64encode(bytes(range(32))).decode()


@pytest.mark.parametrize(
    ("references", "says"),
    [
        ("", "no key in it"),
        (f"k={SECRET}", "ID=env:NAME or ID=file:PATH"),
        (SECRET, "ID=env:NAME or ID=file:PATH"),
        ("k=env:", "ID=env:NAME or ID=file:PATH"),
        ("k=env:NOT_SET", "NOT_SET is not set"),
        ("k=file:/nowhere/key", "/nowhere/key"),
        ("k=env:SHORT", "has 3 bytes"),
        ("k=env:NO_BASE64", "openssl rand -base64 32"),
        ("a b=env:GOOD", "no key id"),
        ("k=env:GOOD,k=env:GOOD", "two keys have one id"),
    ],
)
def test_a_key_that_can_t_be_used_is_named_and_not_shown(
    references: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"SHORT": "QUJD", "NO_BASE64": "%%%", "GOOD": SECRET}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadKey) as caught:
        read_keys(references)
    assert says in str(caught.value)
    assert SECRET not in str(caught.value)
