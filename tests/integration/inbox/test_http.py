"""What the inbox shows and takes, as HTTP."""

import html

import httpx
import pytest
from temporalio.client import Client

from io_harness import runs
from io_harness.workflows.result import Outcome
from tests.scripted import call, turn

from ..conftest import Handle, Repo, Start
from ..test_approvals import decide, pending
from .conftest import Site, hidden

EDIT = call("edit_file", path="calc.py", old="a - b", new="a + b")
FINISH = call("finish", summary="add adds now")


async def waiting(start: Start, **contract: object) -> tuple[Handle, str]:
    """A run that asks before it edits, and the id of its request."""
    run = await start(turn(EDIT), turn(FINISH), policy="careful", verification={"kind": "none"},
                      **contract)  # fmt: skip
    (asked,) = await pending(run)
    return run, asked.id


async def form(person: httpx.AsyncClient, path: str, **fields: str) -> httpx.Response:
    page = await person.get(path)
    return await person.post(path, data={"csrf": hidden(page.text, "csrf"), **fields})


async def test_a_request_is_listed_shown_and_approved(
    start: Start, site: Site, person: httpx.AsyncClient, repo: Repo
) -> None:
    run, asked = await waiting(start, goal="Make <b>add</b> add.")
    listed = (await person.get("/")).text
    assert f"/requests/{asked}/{run.id}" in listed
    assert "Make &lt;b&gt;add&lt;/b&gt; add." in listed
    path = f"/requests/{asked}/{run.id}"
    shown = (await person.get(path)).text
    assert '<span class="diff-removed">-    return a - b' in shown
    assert '<span class="diff-added">+    return a + b' in shown
    assert "of layer" in shown
    assert f"http://ui.example/{run.id}" in shown
    done = await form(person, path, verdict="approve", reason="looks right")
    assert (done.status_code, done.headers["location"]) == (303, path)
    assert (await run.result()).outcome is Outcome.FINISHED
    after = (await person.get(path)).text
    assert "Approved by anna" in after
    assert "looks right" in after
    assert f"/requests/{asked}/{run.id}" not in (await person.get("/")).text


async def test_a_denial_reaches_the_agent_with_its_reason(
    start: Start, person: httpx.AsyncClient
) -> None:
    denied = call("edit_file", path="calc.py", old="a - b", new="a + b", fails=True,
                  shows=("use the\nother file",))  # fmt: skip
    run = await start(turn(denied), turn(FINISH), policy="careful", verification={"kind": "none"})
    (asked,) = await pending(run)
    path = f"/requests/{asked.id}/{run.id}"
    await form(person, path, verdict="deny", reason="use the\r\nother file")
    assert (await run.result()).outcome is Outcome.FINISHED


async def test_changed_arguments_are_what_runs(
    start: Start, person: httpx.AsyncClient, repo: Repo
) -> None:
    run, asked = await waiting(start)
    path = f"/requests/{asked}/{run.id}"
    edited = "sum(\r\n        (a, b)\r\n    )"
    await form(person, path, verdict="approve", **{"argument:new": edited, "argument:old": "a - b"})
    result = await run.result()
    assert result.outcome is Outcome.FINISHED
    assert "with other arguments" in (await person.get(path)).text
    (logged,) = (await run.query("result_so_far"))["decisions"]
    assert logged["decision"]["edit"]["new"] == "sum(\n        (a, b)\n    )"


async def test_the_first_decision_wins_and_the_second_is_told_who_was_first(
    start: Start, person: httpx.AsyncClient, repo: Repo
) -> None:
    run, asked = await waiting(start)
    path = f"/requests/{asked}/{run.id}"
    page = await person.get(path)  # open in one browser, while somebody decides elsewhere
    await decide(run, asked, "approve", by="bert")
    late = await person.post(
        path, data={"csrf": hidden(page.text, "csrf"), "verdict": "deny", "reason": "no"}
    )
    assert late.status_code == 409
    assert "Not taken: bert decided first (approved)." in html.unescape(late.text)
    assert "Approved by bert" in late.text
    await run.result()


async def test_what_hides_or_would_run_is_shown_as_text(
    start: Start, person: httpx.AsyncClient
) -> None:
    evil = "echo '</pre><script>alert(1)</script>' \u202e\u2066 # \x1b[2K"
    run = await start(turn(call("run_command", command=evil)), policy="careful",
                      verification={"kind": "none"})  # fmt: skip
    (asked,) = await pending(run)
    shown = await person.get(f"/requests/{asked.id}/{run.id}")
    assert "<script" not in shown.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown.text
    for hiding in "\u202e\u2066\x1b":
        assert hiding not in shown.text
    assert "\\u202e\\u2066" in shown.text
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert "unsafe" not in policy
    await run.cancel()


async def test_a_form_that_can_t_be_taken_loses_nothing(
    start: Start, person: httpx.AsyncClient
) -> None:
    question = call("ask_user", question="Which base?")
    run = await start(turn(question), policy="careful", verification={"kind": "none"})
    (asked,) = await pending(run)
    path = f"/requests/{asked.id}/{run.id}"
    empty = await form(person, path, verdict="approve", reason="  ")
    assert (empty.status_code, "Write the answer first." in empty.text) == (422, True)
    none = await form(person, path, reason="typed already")
    assert (none.status_code, "typed already" in none.text) == (422, True)
    assert "Press one of the buttons." in none.text
    await run.cancel()


@pytest.mark.parametrize("path", ["/", "/requests/0.0-x/run"])
async def test_without_the_token_nothing_is_shown_or_taken(site: Site, path: str) -> None:
    async with httpx.AsyncClient(base_url=site.address, trust_env=False) as stranger:
        for response in (await stranger.get(path), await stranger.post(path, data={})):
            assert response.status_code == 401
        assert (await stranger.get("/login?token=wrong")).status_code == 401
        assert (await stranger.get("/login")).status_code == 401
        assert not stranger.cookies


async def test_another_site_can_t_use_the_browser_s_cookie(
    start: Start, site: Site, person: httpx.AsyncClient
) -> None:
    run, asked = await waiting(start)
    path = f"/requests/{asked}/{run.id}"
    csrf = hidden((await person.get(path)).text, "csrf")
    cookie = (await person.get(site.login)).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    evil = "http://evil.example"
    approve = {"verdict": "approve", "csrf": csrf}
    for headers, data in (
        ({"origin": evil}, approve),
        ({"origin": "null"}, approve),
        ({}, {"verdict": "approve"}),
        ({}, {"verdict": "approve", "csrf": "x" * 32}),
    ):
        assert (await person.post(path, headers=headers, data=data)).status_code == 403
    assert (await person.get(path, headers={"host": "evil.example"})).status_code == 400
    assert len(await run.query("pending_approvals")) == 1
    taken = await person.post(path, headers={"origin": site.address}, data=approve)  # the control
    assert taken.status_code == 303
    await run.result()


async def test_what_is_not_there(person: httpx.AsyncClient) -> None:
    missing = await person.get("/requests/0.0-x/nowhere")
    assert (missing.status_code, "no run &#39;nowhere&#39;" in missing.text) == (404, True)


async def test_the_style_is_all_that_a_page_loads(person: httpx.AsyncClient) -> None:
    page = (await person.get("/")).text
    assert page.count("<link") == 1
    assert "<script" not in page
    assert " style=" not in page
    assert (await person.get("/inbox.css")).headers["content-type"].startswith("text/css")


async def test_of_too_many_runs_the_longest_waiting_are_listed(
    start: Start, client: Client, person: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = await waiting(start)
    second, _ = await waiting(start)
    both = (await person.get("/")).text
    assert both.index(first.id) < both.index(second.id)
    all_of_them = len([run async for run in runs.waiting_runs(client)])
    monkeypatch.setattr("io_harness.inbox.reading.MOST_RUNS", all_of_them - 1)
    fewer = (await person.get("/")).text
    assert (first.id in fewer, second.id in fewer) == (True, False)
    assert "And 1 more runs." in fewer
    for run in (first, second):
        await run.cancel()
