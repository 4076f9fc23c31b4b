"""An MCP server that wants a token, and the authorization server that gives them out."""

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

import jwt
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from .http_servers import OldServer, serving

SECRET = "s3cr3t-of-the-client"
PUBLIC_KEYS: dict[str, str] = {}


@dataclass
class Authority:
    """An authorization server (RFC 6749, 7591, 7636, 8414); its refresh tokens are good for one use."""

    port: int = 0
    claims: str = ""
    """The issuer that its metadata claims to be; by default itself."""
    token_endpoint: str = ""
    """What its metadata names, instead of its own."""
    lifetime: int = 3600
    answer: Response | None = None
    """Instead of a token."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """Requests to its token endpoint."""
    paths: list[str] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)
    renewals: set[str] = field(default_factory=set)
    """Refresh tokens that were not used yet."""
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
                Route("/{rest:path}", self.nothing),
            ]
        )

    async def nothing(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        return Response(status_code=404)

    async def metadata(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        issuer = self.issuer
        return JSONResponse(
            {
                "issuer": self.claims or issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": self.token_endpoint or f"{issuer}/token",
                "registration_endpoint": f"{issuer}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
            }
        )

    async def register(self, request: Request) -> Response:
        self.paths.append(request.url.path)
        asked = await request.json()
        known = {"client_id": "registered", "redirect_uris": asked["redirect_uris"]}
        return JSONResponse({**known, "token_endpoint_auth_method": "none"}, status_code=201)

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        code = secrets.token_urlsafe()
        self._codes[code] = asked
        back = {"code": code, "state": asked["state"], "iss": self.issuer}
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(back)}")

    async def token(self, request: Request) -> Response:
        asked = {name: str(value) for name, value in (await request.form()).items()}
        if basic := request.headers.get("authorization"):
            asked["basic"] = base64.b64decode(basic.removeprefix("Basic ")).decode()
        self.asked.append(asked)
        if self.answer is not None:
            return self.answer
        if self._refused(asked):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        token, refresh = f"at-{secrets.token_urlsafe()}", f"rt-{secrets.token_urlsafe()}"
        self.valid.add(token)
        self.renewals.add(refresh)
        return JSONResponse(
            {
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": self.lifetime,
                "refresh_token": refresh,
            }
        )

    def _refused(self, asked: dict[str, str]) -> bool:
        match asked["grant_type"]:
            case "client_credentials" if "client_assertion" in asked:
                jwt.decode(
                    asked["client_assertion"], PUBLIC_KEYS["es"], ["ES256"], audience=self.issuer
                )
                return False
            case "client_credentials":
                return asked.get("basic") != f"me:{SECRET}"
            case "authorization_code":
                begun = self._codes.pop(asked["code"])
                digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
                challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                return begun["code_challenge"] != challenge
            case "refresh_token" if asked["refresh_token"] in self.renewals:
                self.renewals.remove(asked["refresh_token"])
                return False
            case _:
                return True


@dataclass
class Protected:
    """A session server that answers only those who come with a token of its authority."""

    authority: Authority
    mcp: OldServer = field(default_factory=OldServer)
    port: int = 0
    metadata_url: str = ""
    """What it says in its challenge, instead of its own."""
    named: str = ""
    """The authorization server that its metadata names, instead of its own."""
    lacks: str = ""
    """A scope that calls lack."""
    strangers: bool = False
    """Answers those without a token, too."""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/mcp", self.answer, methods=["GET", "POST", "DELETE"]),
                Route("/.well-known/oauth-protected-resource/mcp", self.metadata),
            ]
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "resource": self.url,
                "authorization_servers": [self.named or self.authority.issuer],
            }
        )

    async def answer(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.authority.valid and not self.strangers:
            own = f"http://127.0.0.1:{self.port}/.well-known/oauth-protected-resource/mcp"
            challenge = f'Bearer resource_metadata="{self.metadata_url or own}"'
            return Response(status_code=401, headers={"www-authenticate": challenge})
        if self.lacks and b'"tools/call"' in await request.body():
            challenge = f'Bearer error="insufficient_scope", scope="{self.lacks}"'
            return Response(status_code=403, headers={"www-authenticate": challenge})
        return await self.mcp(request)


@asynccontextmanager
async def protected() -> AsyncIterator[Protected]:
    authority = Authority()
    server = Protected(authority)
    async with serving(authority.app()) as authority.port, serving(server.app()) as server.port:
        yield server
