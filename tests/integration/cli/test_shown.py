"""How much of a run is shown, on a terminal and in a pipe."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from io_harness.cli import group
from tests.fakes.provider import FakeProvider
from tests.fakes.script import Call, Say

from .conftest import Recorded, Shell
from .test_commands import WRITE
from .test_prompt import ESCAPES, typed

COMMON = ("--goal", "greet", "--verify", "test -f new.txt", "--policy", "unattended")


def test_a_pipe_gets_no_colour_and_no_redrawing(shared: Shell, recorded: Recorded) -> None:
    done = shared.run("run", *COMMON, "--model", recorded(WRITE))
    assert done.code == 0, done.err
    assert "\x1b" not in done.out + done.err
    assert "\r" not in done.out
    assert "verify      passed" in done.out


@pytest.mark.parametrize("how", [["--plain"], []], ids=["plain", "usual"])
def test_a_terminal_gets_both_unless_told_otherwise(
    shared: Shell, recorded: Recorded, how: list[str]
) -> None:
    code, shown = typed(shared, [], "run", *COMMON, *how, "--model", recorded(WRITE))
    assert code == 0, shown
    assert bool(ESCAPES.search(shown)) is not bool(how)
    assert re.search(r"passed: test -f new.txt", ESCAPES.sub("", shown))


def test_quiet_shows_how_it_ends_and_no_step(shared: Shell, recorded: Recorded) -> None:
    done = shared.run("run", *COMMON, "--quiet", "--model", recorded(WRITE))
    assert done.code == 0, done.err
    assert "step 1" not in done.out
    assert "watch" not in done.out
    assert "success     verified and landed" in done.out


async def test_what_the_model_writes_is_shown_while_it_writes(shared: Shell) -> None:
    """The words stand under the spinner before the reply is complete, and are its last ones."""
    told = "I look at the words one by one. " * 12
    finish = Call("finish", {"summary": "done"})
    async with FakeProvider(Say(told, calls=(finish,), write_bytes=40, pause=0.03)) as fake:
        arguments = ("run", "--goal", "greet", "--verify", "true",
                     "--policy", "unattended", "--land", "patch:out.diff",
                     "--model", "openai-compatible/slow", "--set", f"model.base_url={fake.url}/v1",
                     "--set", "model.price.input=0", "--set", "model.price.output=0")  # fmt: skip
        code, shown = await asyncio.to_thread(typed, shared, [], *arguments)
    assert code == 0, shown
    before, _, _ = ESCAPES.sub("", shown).partition("step 1  ")
    assert "words one by one" in before
    assert re.search(r"\d+ s · [\d,]+ tokens, \d\.\d{4} USD", before)


def test_completion_names_commands_and_options() -> None:
    program = Path(sys.executable).parent / "io-harness"
    for shell in ("bash", "zsh", "fish"):
        made = subprocess.run(
            [program, "completion", shell], capture_output=True, text=True, check=True
        )
        assert "_IO_HARNESS_COMPLETE" in made.stdout
    script = 'eval "$(io-harness completion bash)" && complete -p io-harness'
    path = f"{program.parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", script], env={"PATH": path}, check=True, capture_output=True)
    for words, expected in (("io-harness app", "approve"), ("io-harness run --qu", "--quiet")):
        found = subprocess.run(
            [program],
            env={"PATH": path, "_IO_HARNESS_COMPLETE": "bash_complete", "COMP_WORDS": words,
                 "COMP_CWORD": str(words.count(" "))},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert f"plain,{expected}" in found.stdout


def test_every_command_and_option_says_what_it_does() -> None:
    for name, command in group.commands.items():
        assert command.get_short_help_str(500).endswith("."), name
        for parameter in command.params:
            if "--help" not in parameter.opts and parameter.param_type_name == "option":
                assert getattr(parameter, "help", None), (name, parameter.name)
