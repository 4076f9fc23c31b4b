"""`trace --tree`: a run's sub-agents in the terminal and as JSON."""

import json
from pathlib import Path

from tests.agents import Kinds, contains, finish, task, writes
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
