"""Asks the person at the terminal to decide."""

import getpass
import json
from typing import Literal

import click
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text
from temporalio.client import Client

from io_harness import runs
from io_harness.visible import visible
from io_harness.workflows.approvals import Decision, PendingApproval

from . import render
from .terminal import ask_line

Policy = Literal["prompt", "approve", "deny", "leave"]
"""What to do with requests: ask the person, approve or deny all, or leave them waiting."""


async def ask(out: Console, client: Client, run: str, pending: PendingApproval) -> Decision | None:
    """Show the request and read a decision; None leaves it waiting."""
    out.print(render.approval(pending))
    if pending.request.act == "question":
        answer = await ask_line(out, "your answer (empty leaves the run waiting): ")
        return _decision(pending, "approve", reason=answer) if answer else None
    if pending.request.act == "retry":
        return await _ask_retry(out, pending)
    suggestion = pending.request.suggestion
    choices = "[y] approve  [n] deny" + ("  [r] approve and remember" if suggestion else "")
    if suggestion is not None:
        rule = visible(suggestion.text)
        out.print(Text(f"[r] remembers for this run: {rule}", style="dim"))
    editable = pending.request.act != "land"
    choices += ("  [e] edit" if editable else "") + "  [q] leave it waiting"
    while True:
        answer = await ask_line(out, f"{choices}: ")
        match (answer or "q").lower():
            case "y" | "yes":
                return _decision(pending, "approve")
            case "n" | "no":
                reason = await ask_line(out, "why (told to the agent; may be empty): ")
                return _decision(pending, "deny", reason=reason or "")
            case "r" if suggestion is not None:
                return _decision(pending, "approve", remember=True)
            case "e" if editable:
                arguments = await edited_arguments(client, run, pending)
                if arguments is not None:
                    return _decision(pending, "approve", edit=arguments)
                out.print("nothing changed")
            case "q":
                return None
            case _:
                continue


async def _ask_retry(out: Console, pending: PendingApproval) -> Decision | None:
    verdicts: dict[str, Literal["retry", "skip", "abort"]] = {
        "r": "retry", "s": "skip", "a": "abort"
    }  # fmt: skip
    while True:
        answer = await ask_line(
            out, "[r] run it again  [s] skip it  [a] end the run  [q] leave it waiting: "
        )
        if answer is None or answer.lower() == "q":
            return None
        if answer.lower() in verdicts:
            return _decision(pending, verdicts[answer.lower()])


async def edited_arguments(
    client: Client, run: str, pending: PendingApproval
) -> dict[str, JsonValue] | None:
    """Let the person change the call's arguments in their editor; None if they change nothing."""
    call = await runs.call_of(client, run, pending)
    if call is None:
        return None
    text: str | None = json.dumps(call.arguments, indent=2, ensure_ascii=False) + "\n"
    while True:
        text = click.edit(text, extension=".json")
        if text is None or not text.strip():
            return None
        try:
            arguments = json.loads(text)
        except ValueError as error:
            text = f"{text.rstrip()}\n\n// not valid JSON: {error}; empty the file to give up\n"
            continue
        return arguments if isinstance(arguments, dict) and arguments != call.arguments else None


def _decision(
    pending: PendingApproval,
    verdict: Literal["approve", "deny", "retry", "skip", "abort"],
    *,
    reason: str = "",
    edit: dict[str, JsonValue] | None = None,
    remember: bool = False,
) -> Decision:
    return Decision(
        request=pending.id,
        verdict=verdict,
        by=person(),
        reason=reason,
        edit=edit,
        remember=remember,
    )


def standing(pending: PendingApproval, verdict: Literal["approve", "deny"]) -> Decision:
    """The answer of somebody who decided beforehand about all requests."""
    if pending.request.act == "retry":
        return _decision(pending, "retry" if verdict == "approve" else "skip")
    reason = "nobody is there to answer; use your own judgement" if _is_question(pending) else ""
    return _decision(pending, verdict, reason=reason)


def _is_question(pending: PendingApproval) -> bool:
    return pending.request.act == "question"


def person() -> str:
    """Who decides, as the run's log names them."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no entry for the uid, as in many containers
        return "unknown"
