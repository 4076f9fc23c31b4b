"""`trace --tree`: a run's sub-agents in the terminal and as JSON."""

import json
import re
import shlex
from pathlib import Path

import yaml

from tests.agents import FIXED_CALC, Kinds, contains, finish, fixes, task, writes
from tests.integration.conftest import BROKEN, FIXED, TEST
from tests.scripted import call, turn, write_script

from .conftest import Shell


def test_the_tree_of_a_run(shared: Shell, tmp_path: Path) -> None:
    kinds = Kinds(tmp_path)
    kinds.add("leaf", writes("leaf.txt", "green\n"), finish())
    kinds.add("weak", writes("weak.txt", "x\n"), steps=1)
    below = call("spawn_agents", agents=[task("leaf", contains("leaf.txt", "green")), task("weak")])
    kinds.add("middle", turn(below), finish())
    spawned = call("spawn_agents", agents=[task("middle", contains("leaf.txt", "green"), agents=2)])
    contract = {
        "goal": "Grow a tree.",
        "workspace": {"kind": "directory", "path": "."},
        "verification": contains("leaf.txt", "green"),
        "model": {
            "provider": "replay",
            "name": "script",
            "base_url": write_script(tmp_path / "root.yaml", turn(spawned), finish()),
        },
        "policy": "unattended",
        "containment": {"agents": 3, "depth": 2},
        "agents": kinds.all,
    }
    (shared.cwd / "task.json").write_text(json.dumps(contract))
    done = shared.run("run", "task.json", "--id", "grown")
    assert done.code == 0, done.err

    shown = shared.run("trace", "grown", "--tree").out.splitlines()
    names = [next(word for word in line.split() if word[0].isalnum()) for line in shown]
    assert names == ["grown", "1.0.1", "1.0.1", "1.0.2"]
    assert "2 steps · 240 tokens" in shown[0]
    assert "step_cap_reached" in shown[3]
    assert "The part of weak." in shown[3]

    tree = shared.run("trace", "grown", "--tree", "--json").json
    (middle,) = tree["agents"]
    assert [agent["state"] for agent in middle["agents"]] == ["success", "step_cap_reached"]
    assert shared.run("trace", "grown", "--tree", "--html").code == 2


def test_the_example(shared: Shell, tmp_path: Path) -> None:
    """As its README says, with recorded models."""
    example = Path(__file__).parents[3] / "examples" / "sub_agents"
    contract = yaml.safe_load((example / "contract.yaml").read_text())
    kinds = Kinds(tmp_path)
    withheld = call("write_file", path="calc.py", content="x", fails=True, shows=("no tool",))
    found = call("finish", summary="read it", answer={"findings": []})
    kinds.add("fixer", fixes(), finish())
    kinds.add("reviewer", turn(withheld), turn(found))
    for name, kind in contract["agents"].items():
        kind["model"] = kinds.all[name]["model"]  # type: ignore[index]
    answer = {"type": "object", "required": ["findings"]}
    turns = (
        turn(call("spawn_agents", agents=[task("fixer", FIXED_CALC)], shows=("Merged",))),
        turn(
            call(
                "spawn_agents", agents=[task("reviewer", output_schema=answer)], shows=("findings",)
            )
        ),
        finish(),
    )
    script = write_script(tmp_path / "root.yaml", *turns)
    contract["model"] = {"provider": "replay", "name": "script", "base_url": script}
    (shared.cwd / "contract.yaml").write_text(yaml.safe_dump(contract))
    (shared.cwd / "calc.py").write_text(BROKEN)
    (shared.cwd / "test_calc.py").write_text(TEST)

    run, trace = re.findall(r"^io-harness (.*)$", (example / "README.md").read_text(), re.MULTILINE)
    done = shared.run(*shlex.split(run))
    assert done.code == 0, done.err
    assert (shared.cwd / "calc.py").read_text() == FIXED
    shown = shared.run(*shlex.split(trace)).out
    assert "The part of fixer." in shown
    assert "The part of reviewer." in shown
