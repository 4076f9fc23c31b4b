"""How a server at a URL learns who asks: OAuth 2.1, as the Model Context Protocol uses it."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .mcp_fields import HttpUrl, NonEmpty, Reference, Scope
from .model import Strict


class _Registered(Strict):
    """A client that an authorization server knows already, and that acts for itself."""

    issuer: HttpUrl
    """The authorization server that knows the client: its issuer URL. What proves who asks is sent to
    no other, whatever the MCP server says."""
    client_id: NonEmpty
    scope: Scope | None = None
    """Scopes that are asked for, between blanks. Default: those that the server names."""


class ClientCredentials(_Registered):
    """The client credentials grant, with a client secret."""

    kind: Literal["client_credentials"] = "client_credentials"
    client_secret: Reference
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] = (
        "client_secret_basic"
    )


class PrivateKeyJwt(_Registered):
    """The client credentials grant, with an assertion that the worker signs (RFC 7523, 2.2)."""

    kind: Literal["private_key_jwt"] = "private_key_jwt"
    key: Reference
    """The private key, in PEM."""
    algorithm: Literal["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "EdDSA"] = (
        "ES256"
    )


class Login(Strict):
    """The authorization code grant: a person logs in once on the worker's host, with
    `io-harness mcp login`. The worker keeps the tokens and refreshes them."""

    kind: Literal["login"] = "login"
    issuer: HttpUrl | None = None
    """The one authorization server that may be used. Default: the one that the MCP server names."""
    client_id: NonEmpty | None = None
    """Of a client that is registered there already. Default: the client registers itself."""
    client_secret: Reference | None = None
    client_metadata_url: HttpUrl | None = None
    """Where a document about the client is published; its id, where the authorization server takes
    such documents."""
    scope: Scope | None = None
    """Scopes that are asked for, between blanks. Default: those that the server names."""

    @model_validator(mode="after")
    def _secret_has_an_owner(self) -> "Login":
        if self.client_secret is not None and (self.client_id is None or self.issuer is None):
            raise ValueError(
                "client_secret needs client_id and issuer too: it is sent to that issuer only"
            )
        if self.client_metadata_url is not None and self.client_id is not None:
            raise ValueError("give client_id or client_metadata_url, not both")
        return self


McpAuth = Annotated[ClientCredentials | PrivateKeyJwt | Login, Field(discriminator="kind")]
