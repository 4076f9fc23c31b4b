"""What the pages say about commands, contracts, codes, activities and each other holds."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml
from pydantic import TypeAdapter
from temporalio.client import Plugin

from io_harness.activities.settings import Settings
from io_harness.cli import group
from io_harness.cli.error_codes import CODES
from io_harness.plugin import HarnessPlugin
from io_harness.workflows.contract import Model, TaskContract
from io_harness.workflows.result import Outcome

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs").glob("*.md"))
NEW = (
    "getting-started", "how-it-works", "cli", "operations", "deployment", "observability", "security",
    "contributing",
)  # fmt: skip
SHELL = re.compile(r"```(?:sh|console)\n(.*?)```", re.DOTALL)


def text(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def commands(page: str) -> list[list[str]]:
    lines = "".join(SHELL.findall(page)).splitlines()
    inline = re.findall(r"`(io-harness [^`]+)`", page)
    return [
        shlex.split(re.split(r" (?:<|\||2>|#)", line.removeprefix("$ "))[0])[1:]
        for line in (*lines, *inline)
        if line.removeprefix("$ ").startswith("io-harness ")
    ]


@pytest.mark.parametrize("name", NEW)
def test_every_command_and_option_exists(name: str) -> None:
    for words in commands(text(name)):
        if words == ["COMMAND", "--help"]:
            continue
        found: click.Command = group
        while isinstance(found, click.Group):
            command = found.get_command(click.Context(found), words[0])
            assert command is not None, words
            found, words = command, words[1:]
        known = {option for parameter in found.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known, (found.name, words)


def test_commands_are_found() -> None:
    assert sum(len(commands(text(name))) for name in NEW) > 15


def test_contracts() -> None:
    whole, model = (
        yaml.safe_load(block)
        for block in re.findall(r"```yaml\n(.*?)```", text("getting-started"), re.DOTALL)
    )
    TaskContract.model_validate(whole)
    TypeAdapter(Model).validate_python(model["model"])


def test_activities(tmp_path: Path) -> None:
    block = re.findall(r"```steps\n(.*?)```", text("how-it-works"), re.DOTALL)[0]
    named = {line.split()[0] for line in block.splitlines()}
    plugin = HarnessPlugin(Settings(data_dir=tmp_path))
    served = {each.__temporal_activity_definition.name for each in plugin._activities}  # type: ignore[attr-defined]
    assert named | {"list_mcp_tools", "run_held", "verify_work"} == served


def test_the_plugins_of_a_traced_client() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", text("observability"), re.DOTALL)
    found: dict[str, list[Plugin]] = {}
    exec(block, found)  # type: ignore[arg-type]
    assert [type(plugin).__name__ for plugin in found["plugins"]] == [
        "OpenTelemetryPlugin", "TelemetryPlugin", "HarnessPlugin",
    ]  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve()
        assert file.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {head.lower().replace(" ", "-") for head in heads}, target


def test_codes_and_outcomes_of_the_incidents() -> None:
    table = text("operations").partition("## Incidents")[2]
    named = set(re.findall(r"`([A-Z][A-Za-z]+)`", table))
    assert named
    assert named <= set(CODES)
    assert set(re.findall(r"outcome `([a-z_]+)`", table)) <= {each.value for each in Outcome}
    for code, line in re.findall(r"^\| exit (\d+), (.*?) \|", table, re.MULTILINE):
        for name in re.findall(r"`(\w+)`", line):
            assert CODES[name].exit == int(code), line


def test_the_readme_links_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES} <= set(re.findall(r"\(docs/([a-z-]+\.md)\)", readme))
