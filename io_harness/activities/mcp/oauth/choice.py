"""Which proof of who asks the requests to a server carry."""

from collections.abc import AsyncGenerator
from typing import assert_never

import httpx2

from io_harness.activities.settings import Settings
from io_harness.workflows.mcp_auth import ClientCredentials, Login, PrivateKeyJwt
from io_harness.workflows.mcp_contract import HttpServer

from ..errors import NotAuthorized
from ..link import Link
from ..secrets import resolve
from .bearer import KeptBearer
from .guard import Guarded
from .logins import Logins
from .machine import by_assertion, by_secret


def proof_for(server: HttpServer, settings: Settings, link: Link) -> httpx2.Auth:
    """As the contract says.

    Raises:
        MissingCredential: this worker doesn't give out what it takes.
    """
    seconds = float(server.connect_seconds)
    match server.auth:
        case None:
            return _Nothing(link)
        case ClientCredentials(client_secret=reference) as auth:
            secret = resolve({"client_secret": reference}, server, settings)["client_secret"]
            return Guarded(by_secret(server.url, auth, secret), server.url, seconds, link)
        case PrivateKeyJwt(key=reference) as auth:
            key = resolve({"key": reference}, server, settings)["key"]
            return Guarded(by_assertion(server.url, auth, key), server.url, seconds, link)
        case Login() as auth:
            return KeptBearer(
                Logins(settings.data_dir), server.id, server.url, auth,
                client_secret(auth, server, settings), seconds, link,
            )  # fmt: skip
        case _:
            assert_never(server.auth)


def client_secret(auth: Login, server: HttpServer, settings: Settings) -> str | None:
    """That of a registered client, where the contract names one.

    Raises:
        MissingCredential: this worker doesn't give it out.
    """
    if auth.client_secret is None:
        return None
    return resolve({"client_secret": auth.client_secret}, server, settings)["client_secret"]


class _Nothing(httpx2.Auth):
    """No proof but the contract's headers; says what to do where the server wants one."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        response = yield request
        if response.status_code == 401:
            failure = NotAuthorized(
                "it wants to know who asks (HTTP 401): set auth, or headers.Authorization, of the "
                "server in the contract"
            )
            self._link.end(str(failure), failure)
            raise failure
