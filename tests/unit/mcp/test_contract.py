"""MCP servers in a contract: what is refused, and with what words."""

import pytest
from pydantic import ValidationError

from io_harness.workflows.contract import TaskContract


def contract(*servers: dict[str, object]) -> TaskContract:
    return TaskContract.model_validate(
        {
            "goal": "g",
            "workspace": {"kind": "directory", "path": "/x"},
            "verification": {"kind": "none"},
            "model": {"provider": "replay", "name": "r", "base_url": "r.yaml"},
            "mcp_servers": list(servers),
        }
    )


def stdio(**more: object) -> dict[str, object]:
    return {"kind": "stdio", "id": "s", "command": "x", **more}


def http(**more: object) -> dict[str, object]:
    return {"kind": "http", "id": "h", "url": "https://example.org/mcp", **more}


LOGIN: dict[str, object] = {"kind": "login"}
SECRET: dict[str, object] = {
    "kind": "client_credentials",
    "issuer": "https://auth.example.org",
    "client_id": "c",
    "client_secret": "env:X",
}


def test_both_kinds_are_read() -> None:
    found = contract(stdio(), http(headers={"Authorization": "env:TOKEN"}))
    assert [s.id for s in found.mcp_servers] == ["s", "h"]


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (stdio(id="a__b"), "letters, digits"),
        (stdio(id="a_"), "letters, digits"),
        (stdio(id="-a"), "letters, digits"),
        (stdio(id="x" * 25), "at most 24"),
        (stdio(env={"TOKEN": "sekret"}), "env:GITHUB_TOKEN"),
        (stdio(env={"1A": "env:X"}), "variable's name"),
        (stdio(read=["relative"]), "absolute path"),
        (stdio(write=["/a/../b"]), "absolute path"),
        (stdio(unknown=1), "Extra inputs"),
        (http(url="ftp://example.org"), "begins with http"),
        (http(url="https://user:pw@example.org/"), "no user name"),
        (http(headers={"Host": "env:X"}), "client itself"),
        (http(headers={"Mcp-Session-Id": "env:X"}), "client itself"),
        (http(headers={"a b": "env:X"}), "no name of an HTTP header"),
        (http(headers={"Authorization": "Bearer x"}), "env:GITHUB_TOKEN"),
        (http(auth={**SECRET, "client_secret": "s3cret"}), "env:GITHUB_TOKEN"),
        (http(auth={**SECRET, "issuer": "auth.example.org"}), "begins with http"),
        (http(auth={**SECRET, "scope": 'a"b'}), "one blank between them"),
        (http(auth={"kind": "client_credentials", "client_id": "c"}), "issuer"),
        (http(auth={"kind": "login", "client_secret": "env:X"}), "needs client_id and issuer"),
        (http(auth=LOGIN, headers={"authorization": "env:X"}), "not both"),
        (
            http(auth={**LOGIN, "client_id": "c", "client_metadata_url": "https://x.org/c"}),
            "not both",
        ),
    ],
)
def test_what_cant_be_meant_is_refused(server: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        contract(server)


def test_two_servers_of_one_name_are_refused_in_any_case_of_letters() -> None:
    with pytest.raises(ValidationError, match="two servers are named 'Files' and 'files'"):
        contract(stdio(id="Files"), http(id="files"))
