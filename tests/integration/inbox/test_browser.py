"""The inbox as a person sees it, in Chromium."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from io_harness.workflows.result import Outcome
from tests.scripted import call, turn

from ..browser import chromium
from ..conftest import Handle, Start
from ..test_approvals import decide, pending
from .conftest import Site

LONG = "def add(a, b):\n" + "".join(f"    # line {n} of a long comment\n" for n in range(30))
EDIT = call("edit_file", path="calc.py", old="a - b", new="a + b")
COMMAND = call("run_command", command="python -m unittest -q test_calc && echo <b>ok</b>")
WRITE = call("write_file", path="notes/long.py", content=LONG)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as browser:
        yield browser


@pytest.fixture
async def asked(start: Start) -> AsyncIterator[list[tuple[Handle, str]]]:
    """Three runs that wait: for an edit, a command and a new file."""
    finish = turn(call("finish", summary="done"))
    found = []
    for what, goal in (
        (EDIT, "Make add() add, and keep the docs in step."),
        (COMMAND, "Find out why the build is red."),
        (WRITE, "Write down how addition works."),
    ):
        run = await start(
            turn(what), finish, goal=goal, policy="careful", verification={"kind": "none"},
            approval={"seconds": 3_600},
        )  # fmt: skip
        found.append((run, (await pending(run))[0].id))
    yield found
    await asyncio.gather(*(run.cancel() for run, _ in found))


async def signed_in(browser: Browser, site: Site, **how: object) -> tuple[Page, list[str]]:
    """A page, and what Chromium complains of, like a style or script that the policy forbids."""
    context = await browser.new_context(**how)  # type: ignore[arg-type]
    page = await context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    await page.goto(site.login)
    assert page.url == f"{site.address}/"  # the token is gone from the address
    return page, complaints


async def test_an_edited_approval(
    asked: list[tuple[Handle, str]], browser: Browser, site: Site, tmp_path: Path
) -> None:
    page, complaints = await signed_in(browser, site, viewport={"width": 1280, "height": 860})
    await expect(page.get_by_role("heading")).to_contain_text("wait for you")
    await page.screenshot(path=tmp_path / "list.png", full_page=True)
    await page.get_by_role("link", name="keep the docs in step").click()
    await expect(page.locator("pre.diff")).to_contain_text("+    return a + b")
    await page.get_by_text("Change the arguments first").click()
    await page.get_by_label("new").fill("b + a")
    await page.get_by_label("Reason").fill("this way round")
    await page.screenshot(path=tmp_path / "edit.png", full_page=True)
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Approved by anna")
    await page.screenshot(path=tmp_path / "approved.png", full_page=True)
    run = asked[0][0]
    assert (await run.result()).outcome is Outcome.FINISHED
    (logged,) = (await run.query("result_so_far"))["decisions"]
    assert logged["decision"]["edit"]["new"] == "b + a"
    assert complaints == []


async def test_a_decision_that_comes_too_late(
    asked: list[tuple[Handle, str]], browser: Browser, site: Site, tmp_path: Path
) -> None:
    page, _ = await signed_in(browser, site, viewport={"width": 1280, "height": 860})
    run, request = asked[1]
    await page.goto(site.request(run.id, request))
    await expect(page.locator("pre.command")).to_contain_text("echo <b>ok</b>")
    await decide(run, request, "deny", by="bert", reason="not on a Friday")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("status")).to_contain_text("bert decided first")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Denied by bert")
    await page.screenshot(path=tmp_path / "late.png", full_page=True)


async def test_on_a_phone_in_the_dark(
    asked: list[tuple[Handle, str]], browser: Browser, site: Site, tmp_path: Path
) -> None:
    page, complaints = await signed_in(
        browser, site, viewport={"width": 390, "height": 844}, color_scheme="dark"
    )
    await page.screenshot(path=tmp_path / "list.png")
    for run, request in asked:
        await page.goto(site.request(run.id, request))
        assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    await page.screenshot(path=tmp_path / "write.png", full_page=True)
    paper = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(20, 21, 23)"
    assert complaints == []
