"""The gate at the point of effect."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from io_harness.activities.gate import ApprovalNeeded, CommandLine, Gate, Refused
from io_harness.workflows.contract import Approval
from io_harness.workflows.payloads import ApprovalRequest, Grant, arguments_digest
from io_harness.workflows.policy import Policy, policy_of
from io_harness.workflows.rules import Act, Layer, Rule

ARGUMENTS: dict[str, JsonValue] = {"command": "x"}


def asked(
    gate: Gate,
    act: Act,
    target: str | CommandLine,
    preview: str = "p",
    arguments: dict[str, JsonValue] = ARGUMENTS,
    links: int = 1,
) -> ApprovalRequest:
    with pytest.raises(ApprovalNeeded) as caught:
        gate.require(
            act,
            target,
            tool="t",
            arguments=arguments,
            preview=preview,
            preview_kind="text",
            links=links,
        )
    return caught.value.request


def passes(gate: Gate, act: Act, target: str | CommandLine, preview: str = "p") -> None:
    gate.require(act, target, tool="t", arguments=ARGUMENTS, preview=preview, preview_kind="text")


def line(command: str | tuple[str, ...], root: Path = Path("/ws")) -> CommandLine:
    return CommandLine(command, root=root, home="/home/u")


def test_a_grant_holds_for_exactly_what_was_shown() -> None:
    request = asked(Gate(Policy()), "write", "a.py", "the diff")
    granted = Gate(Policy(), [Grant(digest=request.digest)])
    passes(granted, "write", "a.py", "the diff")
    asked(granted, "write", "a.py", "another diff")
    asked(granted, "write", "b.py", "the diff")
    asked(granted, "write", "a.py", "the diff", {"command": "y"})


def test_a_grant_of_rewritten_arguments_holds_for_these() -> None:
    granted = Gate(Policy(), [Grant(of="arguments", digest=arguments_digest(ARGUMENTS))])
    passes(granted, "write", "a.py")
    asked(granted, "write", "a.py", arguments={"command": "y"})


def test_a_deny_beats_a_grant() -> None:
    everything = [
        Grant(of="arguments", digest=arguments_digest(ARGUMENTS)),
        Grant(digest=asked(Gate(Policy(preset=None)), "write", ".env").digest),
    ]
    passes(Gate(Policy(preset=None), everything), "write", ".env")
    with pytest.raises(Refused, match=r"write \.env: denied by 'deny read\+write \.env\*'"):
        passes(Gate(Policy(), everything), "write", ".env")


def test_where_nobody_can_be_asked() -> None:
    gate = Gate(Policy(), approval=Approval(seconds=0))
    with pytest.raises(Refused, match="nobody can be asked in this run"):
        passes(gate, "write", "a.py")
    passes(gate, "read", "a.py")


def test_a_file_with_several_names_asks() -> None:
    gate = Gate(policy_of("unattended"))
    passes(gate, "read", "a.txt")
    request = asked(gate, "read", "a.txt", links=2)
    assert request.why.layer == "built-in"
    assert request.suggestion is None


def test_a_command_line_is_as_strict_as_its_strictest_part() -> None:
    push = Rule(effect="deny", act="exec", target="git push")
    gate = Gate(policy_of("unattended").merge(Layer(name="team", rules=(push,))))
    passes(gate, "exec", line("pytest -q && git status"))
    with pytest.raises(Refused) as caught:
        passes(gate, "exec", line("pytest -q && timeout 5 git push"))
    assert (caught.value.target, caught.value.reason.layer) == ("git push", "team")


def test_an_argument_vector_is_not_read_by_a_shell() -> None:
    gate = Gate(Policy())
    request = asked(gate, "exec", line(("printf2", "$(git push); x")))
    assert request.suggestion is not None
    assert request.suggestion.target == ("printf2 '$(git push); x' $",)


def test_nothing_but_a_redirection_is_a_write() -> None:
    assert Gate(Policy()).explain("exec", line("> a.txt")).act == "write"
    assert Gate(policy_of("read-only")).explain("exec", line("X=1")).reason.effect == "deny"


def test_a_redirection_is_decided_on_the_file_behind_a_link(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "notes.txt").symlink_to(".env")
    (root / "out").symlink_to("/etc")
    gate = Gate(policy_of("unattended"))
    passes(gate, "exec", line("echo x > plain.txt", root))
    with pytest.raises(Refused, match=r"write \.env"):
        passes(gate, "exec", line("echo x > notes.txt", root))
    with pytest.raises(Refused, match=r"read \.env"):
        passes(gate, "exec", line("cat < notes.txt", root))
    assert gate.explain("exec", line("echo x > out/y", root)).target == "/etc/y"


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("rm -rf build", "allow"),
        ("git reset --hard && git clean -fdx", "allow"),
        ("python -c 'print(1)'", "allow"),
        ("x=ls; $x", "allow"),
        ("rm -rf /", "ask"),
        ("rm -rf ~", "ask"),
        ("rm -rf .", "ask"),
        ("git push --force", "ask"),
        ("echo x > /etc/x", "ask"),
        ("echo x > /tmp/x", "allow"),
        ("cat < .env", "deny"),
        ("echo x > config/.ENV", "deny"),
        ("echo x > /dev/tcp/192.0.2.1/80", "deny"),
        ("exec 3<>/dev/tcp/192.0.2.1/80", "deny"),
    ],
)
def test_unattended(command: str, effect: str) -> None:
    gate = Gate(policy_of("unattended"))
    assert gate.explain("exec", line(command)).reason.effect == effect


def test_what_may_not_be_read_is_not_listed() -> None:
    gate = Gate(Policy())
    assert gate.readable("src/a.py")
    assert not gate.readable("src/.ENV")
    assert not gate.readable("/usr/include/x.h")  # asks


def test_withheld_names_the_topmost(tmp_path: Path) -> None:
    for name in (".ssh/id_rsa", "a/.env", "a/b/key.PEM", "a/b/plain", ".env.example"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "loop").symlink_to(".")
    withheld = [str(path.relative_to(tmp_path)) for path in Gate(Policy()).withheld(tmp_path)]
    assert withheld == [".ssh", "a/.env", "a/b/key.PEM"]


# --- what to remember ---------------------------------------------------------------------------

SUGGESTIONS = [
    # act, target, patterns of the suggestion
    ("write", "src/a [1].py", ("/src/a \\[1\\].py",)),
    ("read", "/usr/include/x.h", ("//usr/include/x.h",)),
    ("exec", line("npm run build -- --watch"), ("npm run build -- --watch $",)),
    ("exec", line("npm run"), ("npm run $",)),
    ("exec", line("pytest -q 'a b'"), ("pytest -q 'a b' $",)),
    ("exec", line("pytest -q | frob"), ("pytest -q $", "frob $")),
    ("exec", line("cd src && npm test 2>&1"), ("npm test $",)),
    ("exec", line("./run.sh"), ("./run.sh $",)),
    ("exec", line("git status --short"), ("git status --short $",)),
    ("exec", line("git push origin main"), ("git push origin main $",)),
    ("exec", "<mcp> github create_issue", ("<mcp> github create_issue $",)),
    ("exec", line("frob $x"), None),
    ("exec", line("rm -rf /"), None),
    ("exec", line("python -c 'x'"), None),
    ("exec", line("frob > a.txt"), None),
]


@pytest.mark.parametrize(("act", "target", "patterns"), SUGGESTIONS)
def test_suggestion(act: Act, target: str | CommandLine, patterns: tuple[str, ...] | None) -> None:
    request = asked(Gate(Policy()), act, target)
    if patterns is None:
        assert request.suggestion is None
        return
    assert request.suggestion is not None
    assert request.suggestion.targets == patterns
    passes(Gate(Policy().remember(request.suggestion)), act, target)


def test_a_suggestion_allows_nothing_else() -> None:
    gate = Gate(Policy().remember(Rule(effect="allow", act="exec", target="npm test $")))
    passes(gate, "exec", line("npm test"))
    for other in (
        "npm test x",
        "npm install",
        "npm test; npm install",
        "./npm test",
        "npm test $x",
    ):
        asked(gate, "exec", line(other))


@pytest.mark.parametrize(
    "command",
    [
        "git diff --output=README.md",
        "git log -p --outp README.md",
        "sort -o README.md data",
        "sort -uoREADME.md data",
        "sort --output=README.md data",
    ],
)
def test_a_reader_that_is_told_to_write_asks_like_a_write(command: str) -> None:
    reads = Rule(effect="allow", act="exec", target=("git diff", "git log", "sort"))
    gate = Gate(Policy(layers=(Layer(name="reads", rules=(reads,)),)))
    assert gate.explain("exec", line("git diff; git log; sort -u data")).reason.effect == "allow"
    assert gate.explain("exec", line(command)).reason.effect == "ask"


def test_without_bash_what_only_bash_reads_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = ("[[ a || ./run ]]", "((./run))", "echo $'\\'; ./run #'")
    assert Gate(Policy()).explain("exec", line(lines[0])).reason.effect == "allow"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert {Gate(Policy()).explain("exec", line(each)).reason.effect for each in lines} == {"ask"}
    assert Gate(Policy()).explain("exec", line("[ a ] || echo b")).reason.effect == "allow"
