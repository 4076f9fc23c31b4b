"""Clients that act for themselves: no person, no browser. Tokens live as long as the connection."""

import httpx2
from mcp.client.auth import TokenStorage
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from io_harness.workflows.mcp_auth import ClientCredentials, PrivateKeyJwt

from .guard import SafeTokens


class NotKept(TokenStorage):
    """The flow itself holds what it needs."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        return None

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Machine(SafeTokens):
    """A new token is asked for where one is over: these grants need no refresh (RFC 6749, 4.4.3)."""

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        if self.context.current_tokens is not None:
            self.context.current_tokens.refresh_token = None


class _BySecret(_Machine, ClientCredentialsOAuthProvider):
    pass


class _ByAssertion(_Machine, PrivateKeyJWTOAuthProvider):
    pass


def by_secret(url: str, auth: ClientCredentials, secret: str) -> SafeTokens:
    """The client credentials grant with the client's secret."""
    flow = _BySecret(
        url,
        NotKept(),
        client_id=auth.client_id,
        client_secret=secret,
        token_endpoint_auth_method=auth.token_endpoint_auth_method,
        scope=auth.scope,
        issuer=auth.issuer,
    )
    flow.scope = auth.scope
    return flow


def by_assertion(url: str, auth: PrivateKeyJwt, key: str) -> SafeTokens:
    """The client credentials grant with an assertion that is signed with the key, in PEM."""
    signed = SignedJWTParameters(
        issuer=auth.client_id,
        subject=auth.client_id,
        signing_key=key,
        signing_algorithm=auth.algorithm,
    )
    flow = _ByAssertion(
        url,
        NotKept(),
        client_id=auth.client_id,
        assertion_provider=signed.create_assertion_provider(),
        scope=auth.scope,
        issuer=auth.issuer,
    )
    flow.scope = auth.scope
    return flow
