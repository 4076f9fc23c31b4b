"""Runs of the command line with encrypted history."""

import base64
import secrets
import signal
from pathlib import Path

import httpx

from .conftest import Recorded, Shell
from .test_commands import WRITE

KEYS = "IO_HARNESS_ENCRYPTION_KEYS"


def key(file: Path) -> Path:
    file.write_text(base64.b64encode(secrets.token_bytes(32)).decode() + "\n")
    return file


def test_an_encrypted_run_is_read_with_the_key_alone(
    shared: Shell, recorded: Recorded, tmp_path: Path
) -> None:
    old, new = key(tmp_path / "old"), key(tmp_path / "new")
    shared.variables = {KEYS: f"2025=file:{old}", "IO_HARNESS_CODEC": "zstd"}
    common = ("--goal", "greet", "--policy", "unattended", "--verify", "test -f new.txt")
    ran = shared.run("run", *common, "--model", recorded(WRITE), "--id", "sealed")
    assert ran.code == 0, ran.out + ran.err

    shared.variables = {KEYS: f"2026=file:{new},2025=file:{old}", "IO_HARNESS_CODEC": "zstd"}
    traced = shared.run("trace", "sealed")  # after a rotation
    assert (traced.code, "verify      passed" in traced.out) == (0, True)

    shared.variables = {KEYS: f"2026=file:{new}"}
    unread = shared.run("trace", "sealed")
    assert unread.code == 8
    assert unread.err.startswith("Error: a payload is encrypted with key '2025', and")
    assert unread.err.count("\n") == 1

    shared.variables = {KEYS: "2026=file:/nowhere"}
    unusable = shared.run("list")
    assert (unusable.code, f"{KEYS}: 2026=file:/nowhere" in unusable.err) == (8, True)


def test_what_a_failure_says_is_encrypted_and_shown(shared: Shell, tmp_path: Path) -> None:
    shared.variables = {KEYS: f"2026=file:{key(tmp_path / 'key')}"}
    failed = shared.run(
        "run", "--goal", "x", "--model", "anthropic/claude-sonnet-4-5", "--id", "no-key"
    )
    assert failed.code == 6, failed.err
    assert "ANTHROPIC_API_KEY" in failed.out
    shared.variables = {}
    listed = shared.run("list", "--json")
    assert "no-key" in listed.out  # ids, states and spend are not encrypted


def test_the_codec_server_decodes_with_the_keys_of_its_environment(
    shared: Shell, tmp_path: Path
) -> None:
    nothing = shared.run("codec-server", "--port", "0")
    assert (nothing.code, f"set IO_HARNESS_CODEC or {KEYS}" in nothing.err) == (2, True)
    shared.variables = {KEYS: f"2026=file:{key(tmp_path / 'key')}"}
    wrong = shared.run("codec-server", "--port", "0", "--origin", "temporal")
    assert (wrong.code, "--origin temporal" in wrong.err) == (2, True)
    server = shared.start(
        "codec-server", "--port", "0", "--origin", "https://ui.example/namespaces"
    )
    assert server.stdout is not None
    address = server.stdout.readline().split()[-1]
    text = {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "InNob3duIg=="}]}
    with httpx.Client(base_url=address, trust_env=False) as ui:
        sealed = ui.post("/encode", json=text).json()
        assert sealed != text
        opened = ui.post("/decode", json=sealed, headers={"origin": "https://ui.example"})
    assert opened.json() == text
    assert opened.headers["access-control-allow-origin"] == "https://ui.example"
    assert shared.end(server, signal.SIGTERM).code == 0
