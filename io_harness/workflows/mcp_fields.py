"""Types of the fields with which a contract describes an MCP server."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, StringConstraints

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")  # RFC 9110, 5.6.2
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SCOPE = re.compile(r"[!#-\[\]-~]+(?: [!#-\[\]-~]+)*\Z")  # RFC 6749, 3.3
_OWN_HEADERS = frozenset(
    {"host", "content-length", "content-type", "accept", "connection", "transfer-encoding"}
)


def _variable(value: str) -> str:
    if not _VARIABLE.match(value):
        raise ValueError("must be a variable's name: letters, digits and '_'")
    return value


def _reference(value: str) -> str:
    scheme, _, name = value.partition(":")
    if scheme != "env" or not _VARIABLE.match(name):
        raise ValueError(
            "must name a variable of the worker's environment, like env:GITHUB_TOKEN; a value "
            "itself never belongs in a contract"
        )
    return value


def _header(value: str) -> str:
    if not _HEADER.match(value):
        raise ValueError("is no name of an HTTP header")
    if value.lower() in _OWN_HEADERS or value.lower().startswith("mcp-"):
        raise ValueError("is set by the client itself")
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an absolute URL that begins with http:// or https://")
    if parts.username or parts.password:
        raise ValueError("must hold no user name or password; give a header by reference instead")
    if parts.fragment:
        raise ValueError("must have no fragment")
    return value


def _scope(value: str) -> str:
    if not _SCOPE.match(value):
        raise ValueError(
            "must be scopes with one blank between them, without quotes and backslashes"
        )
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or ".." in value.split("/") or "\0" in value:
        raise ValueError("must be an absolute path of the worker's host, without '..'")
    return value


NonEmpty = Annotated[str, StringConstraints(min_length=1, max_length=4096)]
Variable = Annotated[str, AfterValidator(_variable)]
Reference = Annotated[str, AfterValidator(_reference)]
HeaderName = Annotated[str, AfterValidator(_header)]
HostPath = Annotated[str, AfterValidator(_absolute)]
HttpUrl = Annotated[NonEmpty, AfterValidator(_url)]
Scope = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_scope)]
