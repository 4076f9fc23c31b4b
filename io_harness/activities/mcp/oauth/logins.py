"""What is kept of a person's login to an MCP server: in a file of this host, readable by its owner
alone. Nothing of it enters a contract, history or a log."""

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from io_harness.activities.locks import file_lock
from io_harness.workflows.mcp_auth import Login

_EARLY_SECONDS = 30.0
"""A token is renewed so long before it is over."""


class KeptLogin(BaseModel):
    """Tokens, and what their renewal takes."""

    model_config = ConfigDict(frozen=True)

    issuer: str
    token_endpoint: str
    resource: str | None
    """The audience that tokens are asked for (RFC 8707)."""
    client_id: str
    client_secret: str | None
    """None where there is none, or where the contract names it by reference."""
    token_endpoint_auth_method: str | None
    access_token: str
    refresh_token: str | None
    expires_at: float | None
    """Seconds since 1970; None where the authorization server didn't say."""
    scope: str | None

    @property
    def is_over(self) -> bool:
        return self.expires_at is not None and time.time() > self.expires_at - _EARLY_SECONDS


class Logins:
    """Those of one host."""

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / "mcp-logins"

    def read(self, url: str, auth: Login) -> KeptLogin | None:
        """The login to the server at `url` as the contract describes it; None where there is none."""
        try:
            return KeptLogin.model_validate_json(self._file(url, auth).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def write(self, url: str, auth: Login, login: KeptLogin) -> Path:
        """Keep it in place of the one before, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, name = tempfile.mkstemp(dir=self._folder)  # its mode is 0600
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(login.model_dump_json())
                file.flush()
                os.fsync(file.fileno())
            path = self._file(url, auth)
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        return path

    @asynccontextmanager
    async def renewing(self, url: str, auth: Login) -> AsyncIterator[None]:
        """Held while tokens are renewed: a refresh token is often good for one use."""
        async with file_lock(self._file(url, auth).with_suffix(".lock")):
            yield

    def _file(self, url: str, auth: Login) -> Path:
        described = f"{url}\n{auth.model_dump_json()}"
        return self._folder / f"{hashlib.sha256(described.encode()).hexdigest()[:32]}.json"
