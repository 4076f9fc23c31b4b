"""Bash is the oracle: whatever it runs of a script must be among the targets, or the script must count
as not understood."""

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from io_harness.activities.shell import targets_of

ATOMS = [
    "c1", "c2 a", "'c1'", '"c1"', 'c""1', "\\c1", "$'c1'", "c\\\n1", "$(echo c1)", "${x:-c1}", "x=1 c1",
    ">f c1", "c1 >f", 'c1 "a b"', "c1 '#'", "c1 $#", "c1 ${#x}", 'c1 "$(c2)"', "c1 `c2`", "c1 a#b",
    "c1 \"it's\"", "c1 'a\"b'", "c1 $((1+2))", "c1 {a,b}", "c1 <(c2)", 'c1 <<< "$(c2)"',
    'c1 "${x:-"y"}"', 'c1 "${x//a/b}"', "c1 ${x:-'}'}", 'c1 "\\\\"', "c1 \\'", "c1 # x", "c1 [[",
    'c1 "`c2`"', "c1 $'\\''", 'c1 "a\\\nb"', "c1 !x", "c1 ~", "c1 2>&1", "c1 &>f", 'c1 "$@"',
    "c1 $'a\\nb'", "c1 ${x#\\'}", 'c1 "${x%"y"}"', "c1 \\# a", 'c1 "$x"#y', "c1 #\\\nc2",
    "((1)) ; c1", "[[ a < b ]] ; c1", "x=${y:-z} c1", "x=(1 2) ; c1", "c1 @(a|b)", "c1 a=(",
    "c1 <<E\n$(c2) `c2`\nE\n", "c1 <<'E'\n$(c2) it's\nE\n", 'c1 <<-E\n\ta "b\n\tE\n',
    "c1 <<E; c2\nx\nE\n", "c1 <<E && c2\nE \nE\n", "c1 <<A <<B\nA\nB\n", 'c1 <<"E F"\nx\nE F\n',
    "c1 <<\\E\n`x\nE\n", "c1 <<E\n\\`c2\\` \\$(c2)\nE\n", 'c1 "$(cat <<E\nx)\nE\n)"',
]  # fmt: skip
FORMS = [
    "{a}; {b}", "{a}\n{b}", "{a} && {b}", "{a} || {b}", "{a} | {b}", "( {a} )", "({a})", "{{ {a}; }}",
    "{{ {a}\n}}", "if {a}; then {b}; fi", "if {a}\nthen {b}\nfi", 'echo "$({a})"', "echo $({a})",
    "cat <<E\n$({a})\nE\n", "f() {{ {a}; }}; f", "function f {{ {a}\n}}\nf", "eval {q}", "bash -c {q}",
    "env bash -c {q}", "trap {q} EXIT", "{{ {a}; }} > f1", "cat <({a})", "for i in 1 2; do {a}; done",
    "case x in x) {a};; esac", "case x in (x) {a} ;; esac", "[[ -n $({a}) ]]", "x=$({a})",
    "{a} # {b}", "# {b}\n{a}", "! {a}", "{a} &\nwait", "time {a}", "echo {q}; {b}", "echo {q} {q}\n{b}",
    "while {a}; do {b}; break; done", "echo ${{x:-$({a})}}", 'echo "${{x:-$({a})}}"', "{a} 2>&1 | {b}",
    "echo $(( 1 + $({a}; echo 1) ))", "if true; then :; else {a}; fi; {b}", "( {a}\n{b} )", "$({a})",
    "coproc {{ {a}; }}; wait", "{a} ; # \\\n{b}", "x={q}; {b}", "echo a \\\n b; {a}",
    'echo {q} > "f 1"; {b}', "set -- {q}; {b}", "select x in 1; do {a}; break; done <<< 1",
]  # fmt: skip
NOISE = st.sampled_from(
    ["'", '"', "\\", "\n", "$", "(", ")", "`", "{", "}", ";", "|", "&", "<", ">", "<<E\n", "\nE\n",
     "<<<", "#", " #", "$(", ")", "${x:-", "}", "$((", "))", "[[ ", " ]]", "x=", "!", "if ", "then ",
     "fi", "do ", "done", "$'", "\\\n", "\t", "*", "[", "~", "esac", ";;", "=(", '$"', " ", "c1"]
)  # fmt: skip


@st.composite
def scripts(draw: st.DrawFn) -> str:
    def build(depth: int) -> str:
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            return draw(st.sampled_from(ATOMS))
        form = draw(st.sampled_from(FORMS))
        quoted = shlex.quote(build(depth - 1))
        return form.format(a=build(depth - 1), b=build(depth - 1), q=quoted)

    script = build(draw(st.integers(1, 3)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at = draw(st.integers(0, len(script)))
        script = script[:at] + draw(NOISE) + script[at:]
    return script


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=(HealthCheck.function_scoped_fixture, HealthCheck.too_slow),
)
@given(scripts())
def test_what_bash_runs_is_among_the_targets(
    tmp_path_factory: pytest.TempPathFactory, script: str
) -> None:
    ran = _run(tmp_path_factory.mktemp("script"), script)
    acts = [target for act, target in targets_of(script, root="/ws", home="/h") if act == "exec"]
    if not any(target.startswith("<dynamic>") for target in acts):
        assert ran <= {target.split(" ")[0] for target in acts}


def _run(folder: Path, script: str) -> set[str]:
    """Which of the commands c1 and c2 bash runs."""
    stubs, cwd, log = folder / "stubs", folder / "cwd", folder / "log"
    stubs.mkdir()
    cwd.mkdir()
    for name in ("c1", "c2"):
        (stubs / name).write_text(f"#!/bin/sh\necho {name} >> {log}\n")
        (stubs / name).chmod(0o755)
    process = subprocess.Popen(
        [shutil.which("bash") or "bash", "-c", script],
        cwd=cwd,
        env={"PATH": str(stubs)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return set(log.read_text().split()) if log.exists() else set()


@given(st.text(max_size=60) | st.lists(NOISE, max_size=12).map("".join))
@settings(max_examples=150, deadline=None)
def test_any_text_has_targets(text: str) -> None:
    for _, target in targets_of(text, root="/ws", home="/h"):
        assert target


def test_characters_that_crash_the_grammar_are_kept_from_it() -> None:
    """Found by the test above: a segmentation fault in tree-sitter-bash."""
    for code in range(0x80, 0x110000, 0x101):
        if not 0xD800 <= code <= 0xDFFF:
            targets_of(f"{{{chr(code)} <<{chr(code)} ${chr(code)}", root="/ws", home="/h")
    assert ("exec", "git 'é'") in targets_of("git é", root="/ws", home="/h")
    heredoc = targets_of("cat <<é\nü\ngit push\né\n", root="/ws", home="/h")
    assert ("exec", "cat") in heredoc


def test_deep_nesting_is_not_understood_and_not_an_error() -> None:
    script = "git push"
    for _ in range(7):
        script = "(" * 25 + f"eval {shlex.quote(script)}" + ")" * 25
    deep = [
        "(" * 5000 + "git push" + ")" * 5000,
        "while cd x; do " * 24 + "a;" + " done;" * 24,
        script,
    ]
    for line in deep:
        acts = targets_of(line, root="/ws", home="/h")
        found = {target.split(" ")[0] for _, target in acts}
        assert found & {"<dynamic>", "git", "cd"}
