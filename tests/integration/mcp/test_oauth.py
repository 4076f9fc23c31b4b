"""Servers that want OAuth: who gets what, who is dialled, and what is told when it fails."""

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.responses import JSONResponse, RedirectResponse

from io_harness.activities.egress import GateJudge
from io_harness.activities.gate import Gate
from io_harness.activities.mcp.errors import NotAuthorized, NotStarted
from io_harness.activities.mcp.oauth.callback import Callback, listening
from io_harness.activities.mcp.oauth.login import log_in
from io_harness.activities.mcp.oauth.logins import Logins
from io_harness.activities.network import RunNetwork
from io_harness.activities.settings import Settings
from io_harness.workflows.mcp_auth import Login
from io_harness.workflows.mcp_contract import HttpServer
from io_harness.workflows.result import Outcome
from tests.integration.conftest import Start
from tests.integration.test_invariants import history_json, payload_text
from tests.scripted import call, turn

from .http_servers import http_server, serving
from .oauth_servers import PUBLIC_KEYS, SECRET, Authority, Protected, protected
from .rig import Rig, allowing_net


@pytest.fixture
async def server(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Protected]:
    monkeypatch.setenv("MCP_TEST_TOKEN", SECRET)
    async with protected() as found:
        rig.policy = allowing_net(f"127.0.0.1:{found.port}", f"127.0.0.1:{found.authority.port}")
        yield found


def by_secret(server: Protected, **more: object) -> HttpServer:
    auth = {
        "kind": "client_credentials",
        "issuer": server.authority.issuer,
        "client_id": "me",
        "client_secret": "env:MCP_TEST_TOKEN",
        **more,
    }
    return http_server(server.url, auth=auth)


def by_login(server: Protected, **more: object) -> HttpServer:
    return http_server(server.url, auth={"kind": "login", **more})


async def browser(rig: Rig, wanted: HttpServer) -> None:
    """A person logs in, with a browser that follows where it is sent."""
    network, auth = RunNetwork(), wanted.auth
    assert isinstance(auth, Login)
    session = network.session("login", GateJudge(Gate(rig.policy)))
    settings = Settings(data_dir=rig.data_dir, credentials=frozenset({"MCP_TEST_TOKEN"}))
    async with listening(0) as callback:

        async def show(page: str) -> None:
            async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as client:
                assert (await client.get(page)).text.endswith("You can close this page.")

        await log_in(wanted, auth, settings, session, network.proxy.resolver, callback, show)


async def test_a_client_that_acts_for_itself_gets_a_token_with_its_secret(
    rig: Rig, server: Protected
) -> None:
    seen = await rig.call(by_secret(server), "ping")
    assert seen.text == "in s0"
    (asked,) = server.authority.asked
    assert asked["basic"] == f"me:{SECRET}"
    assert asked["resource"] == server.url


async def test_a_token_that_is_over_is_asked_for_anew(rig: Rig, server: Protected) -> None:
    server.authority.lifetime = 1
    wanted = by_secret(server)
    assert (await rig.call(wanted, "ping")).text == "in s0"
    server.authority.valid.clear()
    assert (await rig.call(wanted, "ping")).text == "in s0"
    assert [asked["grant_type"] for asked in server.authority.asked] == ["client_credentials"] * 2


async def test_a_client_that_signs_is_known_by_its_key(
    rig: Rig, server: Protected, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
    ).decode()
    PUBLIC_KEYS["es"] = (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )
    auth = {
        "kind": "private_key_jwt", "issuer": server.authority.issuer, "client_id": "me",
        "key": "env:MCP_TEST_TOKEN",
    }  # fmt: skip
    monkeypatch.setenv("MCP_TEST_TOKEN", pem)
    assert (await rig.call(http_server(server.url, auth=auth), "ping")).text == "in s0"
    monkeypatch.setenv("MCP_TEST_TOKEN", "no key")
    rig.run_key = "run-2"
    with pytest.raises(NotStarted, match=r"the key is none|can't be read") as failed:
        await rig.listed(http_server(server.url, auth=auth))
    assert "no key" not in str(failed.value)


async def test_an_authorization_server_that_the_policy_does_not_allow_is_not_dialled(
    rig: Rig, server: Protected
) -> None:
    rig.policy = allowing_net(f"127.0.0.1:{server.port}")
    with pytest.raises(NotStarted, match=f"egress refused: 127.0.0.1:{server.authority.port}"):
        await rig.listed(by_secret(server))
    assert server.authority.paths == []
    assert server.authority.asked == []


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("http://169.254.169.254/latest", r"http://169\.254\.169\.254 is not https"),
        ("https://169.254.169.254/latest", r"egress refused: 169\.254\.169\.254:443"),
        ("https://[::ffff:169.254.169.254]/", r"egress refused: \S*ffff\S*:443"),
        ("https://[fd00:ec2::254]/latest", r"egress refused: fd00:ec2::254:443"),
    ],
)
@pytest.mark.parametrize("by", ["challenge", "resource", "authority"])
async def test_no_step_of_the_flow_is_led_to_a_metadata_service(
    rig: Rig, server: Protected, where: str, words: str, by: str
) -> None:
    rig.policy = allowing_net(f"127.0.0.1:{server.port}", f"127.0.0.1:{server.authority.port}", "*")
    match by:
        case "challenge":
            server.metadata_url = where
        case "resource":
            server.named = where
        case _:
            server.authority.token_endpoint = where
    with pytest.raises(NotStarted, match=words):
        await rig.listed(by_secret(server))
    assert server.authority.asked == []


async def test_a_secret_goes_to_no_other_issuer_than_the_contract_names(
    rig: Rig, server: Protected
) -> None:
    thief = Authority()
    async with serving(thief.app()) as thief.port:
        rig.policy = allowing_net("127.0.0.1:*")
        wanted = by_secret(server)
        server.authority = thief
        with pytest.raises(NotStarted, match="issuer mismatch"):
            await rig.listed(wanted)
        assert thief.paths
        assert thief.asked == []


async def test_metadata_that_claims_another_issuer_is_not_used(rig: Rig, server: Protected) -> None:
    server.authority.claims = "https://other.example"
    with pytest.raises(NotStarted, match="issuer mismatch"):
        await rig.listed(by_secret(server))
    with pytest.raises(NotAuthorized, match="issuer mismatch"):
        await browser(rig, by_login(server))
    assert server.authority.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        JSONResponse({"error": "invalid_client", "error_description": SECRET}, status_code=400),
        JSONResponse({"error": SECRET}, status_code=500),
        JSONResponse({"token": SECRET, "token_type": "mac"}),
        RedirectResponse(f"http://127.0.0.1:9/?{SECRET}", status_code=307),
    ],
)
async def test_what_a_token_endpoint_answers_gets_into_no_error_and_no_log(
    rig: Rig, server: Protected, caplog: pytest.LogCaptureFixture, answer: JSONResponse
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcp")
    server.authority.answer = answer
    with pytest.raises(NotStarted, match="the token endpoint") as failed:
        await rig.listed(by_secret(server))
    assert len(server.authority.asked) == 1
    assert SECRET not in str(failed.value)
    assert SECRET not in caplog.text


@pytest.mark.parametrize("kind", [by_secret, by_login])
async def test_a_call_that_hangs_does_not_hold_up_the_others(
    rig: Rig, server: Protected, kind: Callable[[Protected], HttpServer]
) -> None:
    wanted = kind(server)
    if kind is by_login:
        await browser(rig, wanted)
    await rig.record(wanted)
    server.mcp.hangs.clear()
    hanging = asyncio.create_task(rig.call(wanted, "ping"))
    async with asyncio.timeout(60):
        while server.mcp.calls == 0:
            await asyncio.sleep(0.02)
        assert (await rig.call(wanted, "ping")).text == "in s0"
    assert not hanging.done()
    server.mcp.hangs.set()
    assert (await hanging).text == "in s0"


async def test_a_server_that_repeats_its_token_does_not_bring_it_into_history(
    rig: Rig, server: Protected
) -> None:
    server.mcp.repeats = True
    seen = await rig.call(by_secret(server), "ping")
    assert seen.text == "you sent [secret]"
    (token,) = server.authority.valid
    assert token not in rig.recorded.model_dump_json()
    assert "[secret]" in rig.recorded.model_dump_json()


async def test_a_login_is_kept_for_the_worker_readable_by_its_owner_alone(
    rig: Rig, server: Protected
) -> None:
    wanted = by_login(server)
    with pytest.raises(NotStarted, match="io-harness mcp login CONTRACT web"):
        await rig.listed(wanted)
    await browser(rig, wanted)
    (kept,) = (rig.data_dir / "mcp-logins").glob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert (await rig.call(wanted, "ping")).text == "in s0"
    assert [asked["grant_type"] for asked in server.authority.asked] == ["authorization_code"]


async def test_a_login_serves_no_other_url_scope_or_client(rig: Rig, server: Protected) -> None:
    await browser(rig, by_login(server))
    logins = Logins(rig.data_dir)
    assert logins.read(server.url, Login()) is not None
    assert logins.read(server.url + "2", Login()) is None
    assert logins.read(server.url, Login(scope="more")) is None
    assert logins.read(server.url, Login(client_id="other")) is None


async def test_a_login_that_is_over_is_renewed_once_by_all_who_use_it(
    rig: Rig, server: Protected
) -> None:
    wanted = by_login(server)
    server.authority.lifetime = 1
    await browser(rig, wanted)
    server.authority.lifetime = 3600
    others = [Rig(rig.root, rig.data_dir, rig.pool, rig.policy, f"run-{n}") for n in range(4)]
    seen = await asyncio.gather(*(other.call(wanted, "ping") for other in others))
    assert not any(s.is_error for s in seen)
    grants = [asked["grant_type"] for asked in server.authority.asked]
    assert grants == ["authorization_code", "refresh_token"]


async def test_a_token_that_is_refused_is_renewed(rig: Rig, server: Protected) -> None:
    wanted = by_login(server)
    await browser(rig, wanted)
    server.authority.valid.clear()
    assert (await rig.call(wanted, "ping")).text == "in s0"
    assert server.authority.asked[-1]["grant_type"] == "refresh_token"


async def test_a_login_that_cant_be_renewed_says_to_log_in_again(
    rig: Rig, server: Protected
) -> None:
    wanted = by_login(server)
    await browser(rig, wanted)
    await rig.record(wanted)
    server.authority.valid.clear()
    server.authority.renewals.clear()
    seen = await rig.call(wanted, "ping")
    assert seen.is_error
    assert "could not be renewed: the token endpoint answered HTTP 400 (invalid_grant)" in seen.text
    assert "io-harness mcp login CONTRACT web" in seen.text
    assert "may or may not" not in seen.text
    await browser(rig, wanted)
    assert (await rig.call(wanted, "ping")).text.endswith(
        "\nin s1"
    )  # over a new session, which it says


async def test_a_scope_that_is_missing_is_named(rig: Rig, server: Protected) -> None:
    wanted = by_login(server, scope="read")
    await browser(rig, wanted)
    server.lacks = "write"
    seen = await rig.call(wanted, "ping")
    assert seen.is_error
    assert "set auth.scope in the contract to 'read write'" in seen.text


async def test_a_registered_clients_login_sends_its_secret_to_its_issuer_only(
    rig: Rig, server: Protected
) -> None:
    registered = {"client_id": "me", "client_secret": "env:MCP_TEST_TOKEN"}
    await browser(rig, by_login(server, issuer=server.authority.issuer, **registered))
    assert server.authority.asked[-1]["basic"] == f"me:{SECRET}"
    (kept,) = (rig.data_dir / "mcp-logins").glob("*.json")
    assert SECRET not in kept.read_text()
    with pytest.raises(NotAuthorized, match=r"the contract says https://other\.example"):
        await browser(rig, by_login(server, issuer="https://other.example", **registered))
    assert len(server.authority.asked) == 1


async def test_a_login_is_made_where_the_server_answers_strangers_too(
    rig: Rig, server: Protected
) -> None:
    server.strangers = True
    await browser(rig, by_login(server))
    assert Logins(rig.data_dir).read(server.url, Login()) is not None


async def test_a_server_that_wants_a_proof_that_the_contract_has_not_says_so(
    rig: Rig, server: Protected
) -> None:
    with pytest.raises(NotStarted, match=r"HTTP 401.*set auth, or headers\.Authorization"):
        await rig.listed(http_server(server.url))


async def test_only_the_address_of_this_login_ends_it() -> None:
    callback = Callback()
    for other in ("http://127.0.0.1/other?code=1", "http://127.0.0.1/callback", "", "nonsense"):
        assert not callback.take(other)
    assert callback.take("http://127.0.0.1:1/callback?error=access_denied")
    assert not callback.take("http://127.0.0.1:1/callback?code=late")
    with pytest.raises(Exception, match="the login was refused: access_denied"):
        await callback.came()


async def test_no_token_and_no_secret_of_a_run_is_in_its_history(
    start: Start, server: Protected, rig: Rig, data_dir: Path
) -> None:
    wanted = by_login(server)
    rig.data_dir = data_dir  # that of the worker
    ports = (server.port, server.authority.port)
    rules = [{"effect": "allow", "act": "net", "target": f"127.0.0.1:{port}"} for port in ports]
    policy = {"preset": "unattended", "layers": [{"name": "t", "rules": rules}]}
    servers = [wanted.model_dump(mode="json")]
    more = {"mcp_servers": servers, "policy": policy, "verification": {"kind": "none"}}
    early = await (await start(turn(call("finish", summary="done")), **more)).result()
    assert early.code == "McpServerFailed"
    assert early.spend.steps == 0
    assert "io-harness mcp login CONTRACT web" in early.reason
    await browser(rig, wanted)
    server.authority.valid.clear()  # so that the run renews, too
    run = await start(
        turn(call("mcp__web__ping", shows=("in s",))),
        turn(call("finish", summary="done")),
        **more,
    )
    result = await run.result()
    assert result.outcome is Outcome.FINISHED, result.reason
    told = payload_text(await history_json(run))
    assert server.url in told
    (token,) = server.authority.valid
    for secret in (token, *server.authority.renewals):
        assert secret not in told
