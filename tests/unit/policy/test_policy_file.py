"""Policies from files, and what a workspace's own file may do."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.notes import SourceNotes
from io_harness.activities.store import SnapshotStore
from io_harness.activities.workspace_policy import (
    WORKSPACE_POLICY,
    RunPolicies,
    workspace_policy,
)
from io_harness.contract_file import ContractError, read_contract
from io_harness.policy_file import PolicyFileError, parse_policy, read_policy
from io_harness.workflows.policy import policy_of
from tests.unit.tools.conftest import make_contract

GOOD = """\
preset: careful
layers:
  - name: team
    rules:
      - effect: allow
        act: exec
        target: [pytest, git status]
        match: [pytest -q]
        no_match: [./pytest]
      - {effect: deny, act: [read, write], target: "*.sqlite"}
"""

BAD = [
    # file, where and what
    ("layers:\n - name: a\n   rules:\n   - {effect: deny, act: exec, target: git push,\n"
     "      match: [git status]}\n",
     "p.yaml:4: layers[0].rules[0]: 'deny exec git push' does not match 'git status', as `match` says"),
    ("layers:\n - name: a\n   rules:\n   - {effect: allow, act: exec, target: rustc}\n"
     "   - effect: allow\n     act: exec\n     target: rustc\n     no_match: [rustc a.rs]\n",
     "p.yaml:5: layers[0].rules[1]: 'allow exec rustc' matches 'rustc a.rs', against `no_match`"),
    ("layers:\n - name: a\n   rules:\n   - {effect: deny, act: read, target: \"[a\"}\n",
     "p.yaml:4: layers[0].rules[0]: the pattern '[a': an opening [ without its ]"),
    ("layers:\n - name: a\n   rules:\n   - effect: deny\n     act: raed\n     target: a\n",
     "p.yaml:5: layers[0].rules[0].act: "),
    ("layers:\n - name: a\n   rules:\n   - {effect: deny, act: read}\n",
     "p.yaml:4: layers[0].rules[0]: the field 'target' is missing"),
    ("layers:\n - name: a\n   rulse: []\n", "p.yaml:3: layers[0].rulse: unknown field"),
    ("preset: lax\n", "p.yaml:1: preset: "),
    ("layers: [{name: secrets}]\n", "p.yaml: two layers are named 'secrets'"),
    ("a: 1\na: 2\n", "p.yaml:2:1: not valid YAML: the key 'a' is given twice"),
    ("layers:\n - {name: a, rules: [{effect: deny, act: read, target: *.py}]}\n",
     "put a pattern that begins with * in quotes"),
    ("- a\n", "p.yaml: must be a mapping"),
    ("a: [", "p.yaml:1:5: not valid YAML"),
    ("", "p.yaml: must be a mapping"),
    ("\x00", "p.yaml: not valid YAML"),
    ("a: " + "[" * 5000, "p.yaml: not valid YAML: nested more than 50 deep"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said"), BAD)
def test_a_bad_file_says_where_and_loads_nothing(text: str, said: str) -> None:
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(text.encode(), "p.yaml")
    assert said in str(caught.value)


def test_every_bad_rule_is_named() -> None:
    rule = "   - {effect: deny, act: read, target: '!a'}\n"
    with pytest.raises(PolicyFileError) as caught:
        parse_policy(f"layers:\n - name: a\n   rules:\n{rule}{rule}".encode(), "p.yaml")
    assert [line.split(": ")[0] for line in str(caught.value).splitlines()] == [
        "p.yaml:4",
        "p.yaml:5",
    ]


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GOOD)
    policy = read_policy(tmp_path / "p.yaml")
    assert policy.explain("exec", "pytest -q").layer == "team"
    (tmp_path / "p.json").write_text(json.dumps(policy.model_dump(mode="json")))
    assert read_policy(tmp_path / "p.json") == policy
    (tmp_path / "p.json").write_text('{"preset": "careful", "preset": "unattended"}')
    with pytest.raises(PolicyFileError, match="the key 'preset' is given twice"):
        read_policy(tmp_path / "p.json")
    with pytest.raises(PolicyFileError, match="can't be read: No such file"):
        read_policy(tmp_path / "gone.yaml")


def test_a_contract_names_a_policy_file(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GOOD)
    contract = {**make_contract().model_dump(mode="json"), "policy": "p.yaml"}
    (tmp_path / "c.json").write_text(json.dumps(contract))
    policy = policy_of(read_contract(tmp_path / "c.json").policy)
    assert policy.explain("read", "x.sqlite").layer == "team"
    (tmp_path / "p.yaml").write_text("preset: lax\n")
    with pytest.raises(ContractError, match=r"p\.yaml:1: preset"):
        read_contract(tmp_path / "c.json")


# --- the workspace's own ------------------------------------------------------------------------


def snapshot(store: SnapshotStore, folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    env = {
        "GIT_DIR": str(store.path),
        "GIT_WORK_TREE": str(folder),
        "GIT_INDEX_FILE": str(folder.parent / "index"),
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.com",
        "PATH": os.environ["PATH"],
    }

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], check=True, cwd=folder, env=env, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("add", "-A", ".")
    return git("commit-tree", git("write-tree"), "-m", SourceNotes().message())


async def test_a_workspace_can_narrow_and_never_widen(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "data")
    await store.ready()
    text = """\
layers:
  - name: theirs
    rules:
      - {effect: allow, act: write, target: "**"}
      - {effect: allow, act: net, target: "*"}
      - {effect: allow, act: [read, write], target: ".env*"}
      - {effect: ask, act: net, target: example.com}
      - {effect: deny, act: exec, target: make deploy}
remembered:
  - {effect: allow, act: exec, target: "*"}
"""
    base = snapshot(store, tmp_path / "src", {WORKSPACE_POLICY: text})
    own = policy_of("careful")
    found = await workspace_policy(store, base)
    assert found is not None
    policy = own.narrowed(found)
    assert policy.explain("write", "a.py").effect == "ask"
    assert policy.explain("net", "example.com:443").effect == "deny"
    assert policy.explain("read", ".env").effect == "deny"
    assert policy.explain("exec", "pytest").effect == "ask"
    assert policy.explain("exec", "make deploy").layer == "theirs"
    # The control: as the run's own policy the same file widens.
    assert found.explain("write", "a.py").effect == "allow"
    assert found.explain("exec", "pytest").effect == "allow"


async def test_the_first_snapshot_decides_not_what_the_agent_wrote(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "data")
    await store.ready()
    strict = snapshot(store, tmp_path / "a", {WORKSPACE_POLICY: "preset: read-only\n"})
    await store.set_ref("run-1", "base", strict)
    policies = RunPolicies(store)
    contract = make_contract()
    assert (await policies.policy(contract, "run-1")).explain("write", "a").effect == "deny"
    lax = snapshot(store, tmp_path / "a", {WORKSPACE_POLICY: "preset: unattended\n"})
    await store.set_ref("run-1", "head", lax)
    assert (await policies.policy(contract, "run-1")).explain("write", "a").effect == "deny"


async def test_a_bad_or_absent_workspace_file(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path / "data")
    await store.ready()
    bad = snapshot(store, tmp_path / "a", {WORKSPACE_POLICY: "preset: lax\n"})
    with pytest.raises(ApplicationError, match=r"policy\.yaml:1: preset") as caught:
        await workspace_policy(store, bad)
    assert (caught.value.type, caught.value.non_retryable) == ("BadPolicy", True)
    none = snapshot(store, tmp_path / "b", {"a.txt": "x"})
    assert await workspace_policy(store, none) is None
