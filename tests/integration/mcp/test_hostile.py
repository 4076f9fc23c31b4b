"""A server that means harm, or is broken: it costs the run an observation, never itself."""

import asyncio
import json
import time
import uuid
from pathlib import Path

import pytest

from io_harness.activities.mcp.calls import ANEW
from io_harness.activities.mcp.errors import MissingCredential, NoAnswer, NotStarted

from .rig import Rig, allowing_net, hostile, silent


async def alive(rig: Rig, *, anew: bool = False) -> None:
    """The server answers, over another connection than before or over the same one."""
    seen = await rig.call(hostile(), "ok", a=1)
    assert seen.text == (ANEW if anew else "") + "ok {'a': 1}"


# --- at the start ---------------------------------------------------------------------------------


async def test_a_server_that_ends_at_once_is_told_with_its_standard_error(rig: Rig) -> None:
    with pytest.raises(NotStarted, match=r"exit code 3[\s\S]*FATAL: no database at db.internal"):
        await rig.listed(hostile("refuses-to-start"))
    assert rig.pool.size == 0


async def test_a_program_that_does_not_exist_is_named(rig: Rig) -> None:
    with pytest.raises(NotStarted, match="no-such-program"):
        await rig.listed(hostile(command="no-such-program"))


async def test_a_server_that_says_nothing_is_given_up_in_time(rig: Rig) -> None:
    began = time.monotonic()
    with pytest.raises(NotStarted, match="no connection within 2 s"):
        await rig.listed(hostile("silent", connect_seconds=2))
    assert time.monotonic() - began < 15


async def test_a_server_that_prints_garbage_is_given_up_and_quoted(rig: Rig) -> None:
    with pytest.raises(NotStarted, match=r"not MCP, it begins: 'Starting up... 100% \[31mred'"):
        await rig.listed(hostile("garbage"))


async def test_a_server_that_dies_of_the_newer_revisions_question_is_asked_as_before(
    rig: Rig,
) -> None:
    listed = await rig.listed(hostile("dies-of-discover"))
    assert listed.protocol == "2025-06-18"


async def test_a_list_that_never_comes_is_given_up(rig: Rig) -> None:
    with pytest.raises(NotStarted, match="its list of tools did not come within 1 s"):
        await rig.listed(hostile("list-hangs", list_seconds=1))


async def test_a_variable_that_the_worker_does_not_give_out_is_named(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "x")
    with pytest.raises(MissingCredential, match="SECRET_OF_THE_WORKER is not a credential"):
        await rig.listed(hostile(env={"A": "env:SECRET_OF_THE_WORKER"}))
    with pytest.raises(MissingCredential, match="MCP_TEST_TOKEN is not set"):
        await rig.listed(hostile(env={"A": "env:MCP_TEST_TOKEN"}))


# --- its list -------------------------------------------------------------------------------------


async def test_all_pages_are_read(rig: Rig) -> None:
    assert [t.name for t in (await rig.listed(hostile("pages"))).tools] == ["p0", "p1", "p2", "p3"]


@pytest.mark.parametrize(
    ("mode", "words"), [("endless-pages", "too long"), ("repeated-page", "repeats a page")]
)
async def test_a_list_without_end_is_cut(rig: Rig, mode: str, words: str) -> None:
    source = await rig.record(hostile(mode))
    assert words in source.notes[0]


async def test_names_that_collide_are_told_apart(rig: Rig) -> None:
    await rig.record(hostile("colliding"))
    names = [t.name for t in rig.recorded.tools]
    assert len(names) == len({n.lower() for n in names}) == 5
    assert all(n.startswith("mcp__h__") for n in names)


async def test_built_in_tools_cant_be_shadowed(rig: Rig) -> None:
    await rig.record(hostile("shadowing"))
    assert len(rig.recorded.tools) == 3
    assert all(t.name.startswith("mcp__h__") for t in rig.recorded.tools)


async def test_duplicates_are_noted(rig: Rig) -> None:
    source = await rig.record(hostile("duplicates"))
    assert [t.name for t in rig.recorded.tools] == ["mcp__h__a"]
    assert "a second tool of that name" in source.notes[0]


async def test_a_list_of_a_thousand_tools_is_cut(rig: Rig) -> None:
    source = await rig.record(hostile("many"))
    assert len(rig.recorded.tools) <= 128
    assert "left out" in "\n".join(source.notes)


# --- its calls ------------------------------------------------------------------------------------


async def test_a_call_that_hangs_is_given_up_and_the_next_server_is_reached(rig: Rig) -> None:
    server = hostile(call_seconds=1)
    seen = await rig.call(server, "hang")
    assert seen.is_error
    assert "did not come within 1 s" in seen.text
    assert "may or may not" in seen.text


async def test_cancelling_a_call_leaves_the_connection_up(rig: Rig) -> None:
    server = hostile()
    await rig.record(server)
    connection = await rig.pool.connection(server, rig.place())
    task = asyncio.create_task(connection.call("progress", {}, silent()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert connection.alive
    await alive(rig)
    assert await rig.pool.connection(server, rig.place()) is connection


async def test_a_server_that_dies_in_a_call_is_told_and_started_again(rig: Rig) -> None:
    seen = await rig.call(hostile(), "die")
    assert seen.is_error
    assert "exit code 7" in seen.text
    assert "a last word" in seen.text
    assert "may or may not" in seen.text
    await alive(rig, anew=True)


async def test_a_result_of_100_megabytes_is_refused(rig: Rig) -> None:
    seen = await rig.call(hostile(), "huge")
    assert seen.is_error
    assert "more than 16 MiB" in seen.text
    await alive(rig, anew=True)


async def test_a_long_result_is_capped_and_kept(rig: Rig) -> None:
    seen = await rig.call(hostile(), "long")
    assert not seen.is_error
    assert len(seen.text.encode()) <= 32 * 1024
    assert seen.spill is not None
    assert "line 0\n" in seen.text
    assert "line 39999" in seen.text


async def test_a_flood_of_messages_ends_the_connection(rig: Rig) -> None:
    seen = await rig.call(hostile(call_seconds=60), "flood")
    assert seen.is_error
    assert "over 2,000 messages" in seen.text
    await alive(rig, anew=True)


async def test_some_noise_is_borne_and_a_lot_of_it_is_not(rig: Rig) -> None:
    assert (await rig.call(hostile(), "noise")).text == "after the noise"
    seen = await rig.call(hostile(call_seconds=60), "endless_noise")
    assert "no MCP messages" in seen.text
    await alive(rig, anew=True)


@pytest.mark.parametrize(
    ("tool", "words"),
    [("wrong", "not what the protocol asks for"), ("deep", "did not come within 3 s")],
)
async def test_an_answer_that_is_none_is_an_error(rig: Rig, tool: str, words: str) -> None:
    server = hostile(call_seconds=3)
    seen = await rig.call(server, tool)
    assert seen.is_error
    assert words in seen.text
    assert (await rig.call(server, "ok")).text == "ok {}"


async def test_answers_to_other_questions_are_ignored(rig: Rig) -> None:
    assert (await rig.call(hostile(), "other_id")).text == "yours"
    assert (await rig.call(hostile(), "twice")).text == "first"


async def test_a_result_that_is_not_what_the_tool_declares_is_an_error(rig: Rig) -> None:
    seen = await rig.call(hostile(), "typed")
    assert seen.is_error
    assert "'n' is a required property" in seen.text
    assert '"m": 1' in seen.text


async def test_every_kind_of_content_is_shown_or_named(rig: Rig) -> None:
    seen = await rig.call(hostile(), "contents")
    assert [image.media_type for image in seen.images] == ["image/png"]
    for words in (
        "words\n",
        "[image, image/png, 68 bytes]",
        "[image, image/png, 9 bytes: is not what its type says]",
        "[image, image/svg+xml, 6 bytes: can't be shown]",
        "[audio, audio/wav, 3 bytes: can't be shown]",
        "[audio, audio/wav: not valid base64]",
        "[resource x://1]\ninside",
        "[resource x://2, unknown type, 3 bytes: can't be shown]",
        "[resource 'third' at x://3: a link]",
        '"n": 1',
    ):
        assert words in seen.text


async def test_progress_is_passed_on(rig: Rig) -> None:
    assert (await rig.call(hostile(), "progress")).text == "done"
    await asyncio.sleep(0)
    assert "0/3 part 0" in rig.progress


@pytest.mark.parametrize("tool", ["elicit", "sample", "roots"])
async def test_questions_of_the_server_are_declined(rig: Rig, tool: str) -> None:
    answer = json.loads((await rig.call(hostile(), tool)).text)
    assert "result" not in answer
    assert "not" in answer["error"]["message"].lower()


# --- a list that changes --------------------------------------------------------------------------


async def test_a_tool_that_says_it_changed_is_not_called_as_it_was_recorded(rig: Rig) -> None:
    server = hostile()
    await rig.call(server, "rename")
    await asyncio.sleep(0.1)
    assert rig.pool.stale("run-1")
    seen = await rig.call(server, "ok")
    assert seen.is_error
    assert "is declared in another way now; it was not called" in seen.text
    await rig.record(server)
    assert not rig.pool.stale("run-1")
    assert (await rig.call(server, "ok")).text == "ok {}"


# --- what it may touch ----------------------------------------------------------------------------


async def test_it_sees_no_variable_of_the_worker_but_those_it_is_given(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_WORKER", "worker-secret")
    monkeypatch.setenv("MCP_TEST_TOKEN", "token-value")
    bare = (await rig.call(hostile(), "environment")).text
    assert "worker-secret" not in bare
    assert "token-value" not in bare
    server = hostile(id="h2", env={"TOKEN": "env:MCP_TEST_TOKEN"})
    await rig.record(server)
    given = (await rig.call(server, "environment")).text
    # It has the value: that, and nothing else, is shown so.
    assert json.loads(given)["env"]["TOKEN"] == "[secret]"
    assert "token-value" not in given
    assert "worker-secret" not in given


async def test_it_reads_the_workspace_and_writes_it_only_where_the_contract_says(rig: Rig) -> None:
    inside = str(rig.root / "in-workspace.txt")
    assert (await rig.call(hostile(), "look", path=inside)).text == "read: from the workspace"
    assert (await rig.call(hostile(), "write", path=inside)).text.startswith("failed")
    assert (rig.root / "in-workspace.txt").read_text() == "from the workspace"
    writer = hostile(id="w", workspace="write")
    await rig.record(writer)
    assert (await rig.call(writer, "write", path=inside)).text == "wrote"
    assert (rig.root / "in-workspace.txt").read_text() == "written"
    blind = hostile(id="b", workspace="none")
    await rig.record(blind)
    assert (await rig.call(blind, "look", path=inside)).text.startswith("failed")


async def test_it_reads_nothing_else_of_the_host(rig: Rig, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("host-secret")
    assert (await rig.call(hostile(), "look", path=str(secret))).text.startswith("failed")
    shown = hostile(id="r", read=(str(Path(__file__).parent), str(tmp_path)))
    await rig.record(shown)
    assert (await rig.call(shown, "look", path=str(secret))).text == "read: host-secret"


async def test_it_dials_only_what_the_policy_allows(rig: Rig) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello from the host\n")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    where = {"host": "127.0.0.1", "port": port}
    async with listener:
        assert (await rig.call(hostile(), "dial", **where)).text.startswith("failed")
        rig.policy = allowing_net(f"127.0.0.1:{port}")
        allowed = hostile(id="n")
        await rig.record(allowed)
        assert "200" in (await rig.call(allowed, "dial", **where)).text
        direct = await rig.call(allowed, "dial", direct=True, **where)
        assert direct.text.startswith("failed")
        other = await rig.call(allowed, "dial", host="127.0.0.1", port=port + 1)
        assert "403" in other.text


# --- what is left of it ---------------------------------------------------------------------------


async def test_closing_a_run_ends_its_servers_with_all_their_children(rig: Rig) -> None:
    mark = f"mark-{uuid.uuid4().hex}"
    server = hostile(mark)
    await rig.call(server, "spawn")
    connection = await rig.pool.connection(server, rig.place())
    assert len(processes(mark)) >= 2
    await rig.pool.close_run("run-1")
    assert not connection.alive
    assert not processes(mark)


async def test_an_idle_connection_is_closed_and_opened_again_when_needed(rig: Rig) -> None:
    rig.pool._idle_seconds = 0.3
    await rig.call(hostile(), "ok")
    async with asyncio.timeout(20):
        while rig.pool.size:
            await asyncio.sleep(0.1)
    await alive(rig, anew=True)


async def test_a_call_on_a_dead_connection_is_not_lost_in_silence(rig: Rig) -> None:
    connection = await rig.pool.connection(hostile(), rig.place())
    await connection.close()
    with pytest.raises(NotStarted):
        await connection.call("ok", {}, silent())


async def test_a_request_that_takes_too_long_is_told_from_one_that_failed(rig: Rig) -> None:
    connection = await rig.pool.connection(hostile(call_seconds=1), rig.place())
    with pytest.raises(NoAnswer):
        await connection.call("hang", {}, silent())


def processes(mark: str) -> set[int]:
    """Of this machine, those that have the word on their command line."""
    found: set[int] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
        except OSError:
            continue
    return found
