"""A payload codec that encrypts what goes into Temporal's history, and where its keys come from."""

import base64
import binascii
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec

VARIABLE = "IO_HARNESS_ENCRYPTION_KEYS"
_ENCODING = b"binary/encrypted"
_KEY_ID = "encryption-key-id"
_NONCE_BYTES = 12  # NIST SP 800-38D, section 8.2
_KEY_BYTES = 32
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class BadKey(ValueError):
    """A key can't be used. The message names its reference, never the key."""


class CannotDecrypt(Exception):
    """A payload can't be read with the keys that there are. The message says which key it wants."""


@dataclass(frozen=True)
class Key:
    """A key of AES-256, and the id under which payloads name it."""

    id: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise BadKey(f"{self.id!r} is no key id: letters, digits, '.', '_' and '-', at most 64")
        if len(self.secret) != _KEY_BYTES:
            raise BadKey(f"key {self.id} has {len(self.secret)} bytes; AES-256 takes {_KEY_BYTES}")


def read_keys(references: str) -> tuple[Key, ...]:
    """Keys by reference: `ID=env:NAME` or `ID=file:PATH`, separated by commas. Each holds 32 bytes in
    Base64.

    Raises:
        BadKey
    """
    keys = tuple(_read_key(each.strip()) for each in references.split(",") if each.strip())
    if not keys:
        raise BadKey("there is no key in it")
    if len({key.id for key in keys}) < len(keys):
        raise BadKey("two keys have one id")
    return keys


class EncryptionCodec(PayloadCodec):
    """Encrypts each payload whole, with its metadata, by AES-256 in Galois/Counter Mode (NIST SP
    800-38D), under a random nonce of 96 bits, which its data begins with.

    The first key encrypts; all decrypt. To rotate, add the new key at the end on every worker and
    client, then move it to the front; take the old one out when no run needs it. What is not encrypted
    is read as it is, so that runs of the time before can still be read. The form is that of the
    encryption codecs in Temporal's samples.
    """

    def __init__(self, keys: Iterable[Key], *, inner: PayloadCodec | None = None) -> None:
        """
        Args:
            inner: Applied before, like `io_harness.codec.ZstdCodec()`: what is encrypted can't be
                compressed any more.

        Raises:
            BadKey: there is none.
        """
        self._ciphers = {key.id: AESGCM(key.secret) for key in keys}
        if not self._ciphers:
            raise BadKey("give at least one key")
        self._first = next(iter(self._ciphers))
        self._inner = inner

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        if self._inner is not None:
            payloads = await self._inner.encode(payloads)
        return [self._encrypted(payload) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """
        Raises:
            CannotDecrypt: the key is not among those that there are, or another one, or the payload
                was changed.
        """
        readable = [self._decrypted(payload) for payload in payloads]
        return await self._inner.decode(readable) if self._inner is not None else readable

    def _encrypted(self, payload: Payload) -> Payload:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._ciphers[self._first].encrypt(nonce, payload.SerializeToString(), None)
        return Payload(
            metadata={"encoding": _ENCODING, _KEY_ID: self._first.encode()}, data=nonce + sealed
        )

    def _decrypted(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != _ENCODING:
            return payload
        id = payload.metadata.get(_KEY_ID, b"").decode(errors="replace")
        cipher = self._ciphers.get(id)
        if cipher is None:
            raise CannotDecrypt(
                f"a payload is encrypted with key {id!r}, and {VARIABLE} has only "
                f"{', '.join(self._ciphers)}; add the key"
            )
        nonce, sealed = payload.data[:_NONCE_BYTES], payload.data[_NONCE_BYTES:]
        try:
            return Payload.FromString(cipher.decrypt(nonce, sealed, None))
        except (InvalidTag, ValueError) as error:
            raise CannotDecrypt(
                f"key {id!r} of {VARIABLE} does not decrypt a payload that names it: it is another "
                "key than the one that encrypted it, or the payload was changed"
            ) from error


def _read_key(reference: str) -> Key:
    id, _, source = reference.partition("=")
    scheme, _, name = source.partition(":")
    match scheme:
        case "env" if name:
            text = os.environ.get(name)
            if not text:
                raise BadKey(f"{reference}: the variable {name} is not set")
        case "file" if name:
            try:
                text = Path(name).read_text(encoding="ascii")
            except (OSError, ValueError) as error:
                raise BadKey(f"{reference}: can't be read: {error}") from error
        case _:
            # It may be the key itself, by mistake: it is not repeated.
            raise BadKey("write each key as ID=env:NAME or ID=file:PATH")
    try:
        return Key(id, base64.b64decode(text.strip(), validate=True))
    except binascii.Error as error:
        raise BadKey(
            f"{reference}: not Base64; `openssl rand -base64 {_KEY_BYTES}` makes a key"
        ) from error
