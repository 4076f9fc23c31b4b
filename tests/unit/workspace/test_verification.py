"""The criterion judges the result, not what the agent prepared around it."""

import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from io_harness.activities.settings import Settings
from io_harness.activities.store import SnapshotStore
from io_harness.activities.verification import verify
from io_harness.activities.verification.answer import check_schemas
from io_harness.activities.verification.verify import all_verdict, any_verdict
from io_harness.activities.workspace import open_copy
from io_harness.workflows.payloads import RunScope, VerifyInput
from io_harness.workflows.result import CheckReport, VerificationReport

from .conftest import RUN, begin, contract_for, git


@pytest.fixture
def judge(store: SnapshotStore, settings: Settings, source: Path) -> Any:
    """Runs a criterion on the source with the agent's edits."""

    async def judge(
        criterion: dict[str, Any],
        edits: dict[str, str] | None = None,
        answer: Any = None,
        **fields: Any,
    ) -> VerificationReport:
        contract = contract_for(source, verification=criterion, **fields)
        base = await begin(store, settings, contract)
        async with open_copy(store, settings, RUN, contract, base) as copy:
            copy.begin_change()
            for name, text in (edits or {}).items():
                (copy.root / name).parent.mkdir(parents=True, exist_ok=True)
                (copy.root / name).write_text(text)
            head, _ = await copy.snapshot("edits")
        scope = RunScope(key=RUN, contract_digest="")
        given = VerifyInput(run=scope, base=base, head=head, answer=answer)
        report = await verify(contract, given, settings, store)
        assert not list((settings.data_dir / "runs" / RUN).glob("verify-*"))
        return report

    return judge


def only(report: VerificationReport) -> CheckReport:
    (check,) = report.checks
    assert check.verdict == report.verdict
    return check


def command(run: str | list[str], **fields: Any) -> dict[str, Any]:
    return {"kind": "command", "run": run, **fields}


async def test_a_command_passes_or_fails_by_its_exit_code(judge: Any) -> None:
    passed = only(await judge(command("cat app.py; exit 3", expect_exit=3)))
    assert (passed.verdict, passed.exit_code) == ("passed", 3)
    assert passed.detail == "one\ntwo\nthree\nfour\nfive\n"
    failed = only(await judge(command(["grep", "absent", "app.py"])))
    assert (failed.verdict, failed.exit_code) == ("failed", 1)
    assert "exited with 1" in failed.summary


async def test_the_head_is_judged(judge: Any) -> None:
    report = await judge(command("grep -q fixed app.py"), {"app.py": "fixed\n"})
    assert report.verdict == "passed"


async def test_the_workers_own_interpreter_is_found(judge: Any) -> None:
    report = await judge(command(["python", "-c", "import sys; print(sys.prefix)"]))
    assert only(report).detail.strip() == sys.prefix


async def test_a_signal_leaves_no_exit_code(judge: Any) -> None:
    report = only(await judge(command(["sh", "-c", "kill -9 $$"])))
    assert (report.verdict, report.exit_code) == ("failed", None)
    assert "signal 9" in report.summary


async def test_a_limit_leaves_no_exit_code(judge: Any) -> None:
    report = only(await judge(command("sleep 60", seconds=1)))
    assert (report.verdict, report.exit_code) == ("failed", None)
    assert "limit of wall time" in report.summary


async def test_a_program_that_is_not_installed_is_no_failure_of_the_work(judge: Any) -> None:
    report = only(await judge(command(["no-such-runner", "-q"])))
    assert (report.verdict, report.exit_code) == ("errored", None)
    assert "no-such-runner" in report.summary


async def test_a_script_that_the_agent_removed_is_a_failure_of_the_work(judge: Any) -> None:
    report = only(await judge(command("./absent.sh")))
    assert report.verdict == "failed"


async def test_a_failed_set_up_is_no_failure_of_the_work(judge: Any) -> None:
    report = only(
        await judge(
            command("true"),
            {"broken": ""},
            workspace={"setup": "echo setting up; test ! -e broken"},
        )
    )
    assert report.verdict == "errored"
    assert "setting up" in report.detail


async def test_output_is_capped_with_head_and_tail(judge: Any) -> None:
    report = only(await judge(command("echo first; seq 100000; echo last; exit 1")))
    assert len(report.detail.encode()) <= 33 * 1024
    assert report.detail.startswith("first\n")
    assert report.detail.rstrip().endswith("last")
    assert "bytes omitted" in report.detail


async def test_protected_paths_are_those_of_the_base(judge: Any, source: Path) -> None:
    (source / "tests").mkdir()
    (source / "tests" / "check.sh").write_text("exit 1\n")
    edits = {"tests/check.sh": "exit 0\n", "tests/extra.sh": "exit 0\n"}
    run = "test ! -e tests/extra.sh && sh tests/check.sh"
    assert (await judge(command("sh tests/check.sh"), edits)).verdict == "passed"  # the control
    assert (await judge(command(run, protect=["tests"]), edits)).verdict == "failed"
    only_one = command("test -e tests/extra.sh && ! sh tests/check.sh", protect=["tests/check.sh"])
    assert (await judge(only_one, edits)).verdict == "passed"


async def test_a_link_in_place_of_a_protected_folder_is_undone(
    store: SnapshotStore, settings: Settings, source: Path
) -> None:
    (source / "tests").mkdir()
    (source / "tests" / "check.sh").write_text("exit 1\n")
    criterion = command("sh tests/check.sh", protect=["tests/check.sh"])
    contract = contract_for(source, verification=criterion)
    base = await begin(store, settings, contract)
    async with open_copy(store, settings, RUN, contract, base) as copy:
        copy.begin_change()
        (copy.root / "tests").rename(copy.root / "mine")
        (copy.root / "mine" / "check.sh").write_text("exit 0\n")
        (copy.root / "tests").symlink_to("mine")
        head, _ = await copy.snapshot("link")
    scope = RunScope(key=RUN, contract_digest="")
    given = VerifyInput(run=scope, base=base, head=head)
    assert (await verify(contract, given, settings, store)).verdict == "failed"


async def test_ignored_folders_come_from_the_source(judge: Any, source: Path) -> None:
    (source / ".gitignore").write_text("modules/\n")
    (source / "modules").mkdir()
    (source / "modules" / "runner.sh").write_text("exit 1\n")
    edits = {"modules/runner.sh": "exit 0\n", "modules/more.sh": ""}
    run = command("test ! -e modules/more.sh && sh modules/runner.sh")
    assert only(await judge(run, edits)).exit_code == 1


async def test_an_edited_gitignore_does_not_smuggle_an_environment_in(
    judge: Any, source: Path
) -> None:
    (source / ".gitignore").write_text("modules/\n")
    (source / "modules").mkdir()
    (source / "modules" / "runner.sh").write_text("exit 1\n")
    edits = {"modules/runner.sh": "exit 0\n", ".gitignore": "", "modules/more.sh": ""}
    run = command("test ! -e modules/more.sh && sh modules/runner.sh")
    assert only(await judge(run, edits)).exit_code == 1


async def test_nor_one_that_the_set_up_makes(judge: Any, source: Path) -> None:
    (source / ".gitignore").write_text("env/\n")
    setup = "mkdir -p env && test -e env/ran || echo 'exit 1' > env/ran"
    edits = {"env/ran": "exit 0\n", ".gitignore": ""}
    report = await judge(command("sh env/ran"), edits, workspace={"setup": setup})
    assert only(report).exit_code == 1


async def test_files_of_the_contract_are_laid_over(judge: Any) -> None:
    criterion = {
        "kind": "tests",
        "files": {"hidden/test.sh": "grep -q fixed app.py\n"},
        "run": "sh hidden/test.sh",
    }
    assert (await judge(criterion, {"app.py": "fixed\n"})).verdict == "passed"
    assert (await judge(criterion, {"hidden/test.sh": "exit 0\n"})).verdict == "failed"
    assert (await judge(criterion, {"hidden": "a file in the way\n"})).verdict == "failed"


async def test_the_agents_copy_has_no_file_of_the_contract(
    judge: Any, settings: Settings, source: Path
) -> None:
    criterion = {"kind": "tests", "files": {"hidden.sh": "exit 0\n"}, "run": "sh hidden.sh"}
    assert (await judge(criterion)).verdict == "passed"
    assert not (settings.data_dir / "runs" / RUN / "copy" / "hidden.sh").exists()


async def test_a_run_of_no_tests_is_no_pass(judge: Any) -> None:
    says = "echo 'no tests ran in 0.01s'"
    report = only(await judge(command(says)))
    assert (report.verdict, report.exit_code) == ("failed", 0)
    assert "ran no tests" in report.summary
    assert (await judge(command(says, allow_zero_tests=True))).verdict == "passed"


async def test_real_runners_with_no_test(judge: Any) -> None:
    edits = {
        "test_none.py": "import unittest\n",
        "test_skip.py": "import pytest\n@pytest.mark.skip\ndef test_x(): pass\n",
        "test_one.py": "import unittest\nclass T(unittest.TestCase):\n    def test_x(self): pass\n",
    }
    alone = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python -m pytest -q"
    for run, verdict in [
        ("python -m unittest test_none || true", "failed"),
        ("python -m unittest test_one", "passed"),
        (f"{alone} test_skip.py", "failed"),
        (f"{alone} test_one.py", "passed"),
    ]:
        report = only(await judge(command(run), edits))
        assert report.verdict == verdict, (run, report.detail)


async def test_file_checks_read_the_snapshot(
    judge: Any, store: SnapshotStore, source: Path
) -> None:
    edits = {"out.txt": "exactly this\r\n", "x.log": "ignored", ".gitignore": "*.log\n"}
    for criterion, verdict in [
        ({"kind": "file_contains", "path": "out.txt", "text": "this"}, "passed"),
        ({"kind": "file_contains", "path": "out.txt", "text": "that"}, "failed"),
        ({"kind": "file_equals", "path": "out.txt", "text": "exactly this\r\n"}, "passed"),
        ({"kind": "file_equals", "path": "out.txt", "text": "exactly this\n"}, "failed"),
        ({"kind": "file_contains", "path": "absent", "text": "x"}, "failed"),
        ({"kind": "file_contains", "path": "x.log", "text": "ignored"}, "failed"),
    ]:
        assert (await judge(criterion, edits)).verdict == verdict, criterion


async def test_a_link_is_no_file(store: SnapshotStore, settings: Settings, source: Path) -> None:
    criterion = {"kind": "file_contains", "path": "link", "text": "root"}
    contract = contract_for(source, verification=criterion)
    (source / "link").symlink_to("/etc/passwd")
    base = await begin(store, settings, contract)
    scope = RunScope(key=RUN, contract_digest="")
    report = await verify(contract, VerifyInput(run=scope, base=base, head=base), settings, store)
    assert "symbolic link" in only(report).summary


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_the_answer_is_checked_by_schema(judge: Any) -> None:
    criterion = {"kind": "json_schema", "json_schema": SCHEMA}
    assert (await judge(criterion, answer={"n": 1})).verdict == "passed"
    failed = only(await judge(criterion, answer={"n": "one"}))
    assert failed.verdict == "failed"
    assert "$.n" in failed.summary
    broken = {"kind": "json_schema", "json_schema": {"type": "no such type"}}
    assert (await judge(broken, answer=1)).verdict == "errored"
    for unusable in ({"$ref": "http://127.0.0.1:9/schema"}, {"$ref": "#"}, {"pattern": "("}):
        errored = {"kind": "json_schema", "json_schema": unusable}
        assert (await judge(errored, answer="x")).verdict == "errored"


@pytest.mark.parametrize(
    ("schema", "by_agent", "refused"),
    [
        (SCHEMA, True, ""),
        ({"properties": {"pattern": {"type": "string"}}}, True, ""),
        ({"pattern": "(a+)+$"}, False, ""),
        ({"pattern": "(a+)+$"}, True, "may have no pattern"),
        ({"type": 5}, False, "not a valid JSON Schema"),
        ({"pattern": 5}, False, "not a valid JSON Schema"),
    ],
)
def test_a_schema_that_no_answer_can_be_checked_by_is_refused_first(
    schema: Any, by_agent: bool, refused: str
) -> None:
    nested = {"kind": "all_of", "checks": [{"kind": "json_schema", "json_schema": schema}]}
    for more in ({"output_schema": schema}, {"verification": nested}):
        contract = contract_for(Path("/source"), **more)
        if not refused:
            check_schemas(contract, by_agent=by_agent)
            continue
        with pytest.raises(ApplicationError, match=refused) as caught:
            check_schemas(contract, by_agent=by_agent)
        assert caught.value.type == "InvalidContract"


async def test_the_output_schema_is_a_criterion_of_its_own(judge: Any) -> None:
    report = await judge(command("true"), answer={}, output_schema=SCHEMA)
    assert [(c.kind, c.verdict) for c in report.checks] == [
        ("command", "passed"), ("output_schema", "failed"),
    ]  # fmt: skip
    assert report.verdict == "failed"
    report = await judge({"kind": "none"}, answer={"n": 1}, output_schema=SCHEMA)
    assert report.verdict == "passed"
    with pytest.raises(ApplicationError, match="no criterion"):
        await judge({"kind": "none"})


async def test_all_of_tells_everything_and_any_of_stops_at_the_first_pass(judge: Any) -> None:
    parts = [command("exit 1"), command("echo 2"), command(["no-such-program"])]
    report = await judge({"kind": "all_of", "checks": parts})
    assert [c.verdict for c in report.checks] == ["failed", "passed", "errored"]
    assert report.verdict == "failed"
    report = await judge({"kind": "any_of", "checks": parts})
    assert [c.verdict for c in report.checks] == ["failed", "passed"]
    assert report.verdict == "passed"


async def test_one_criterion_leaves_nothing_for_the_next(judge: Any) -> None:
    parts = [command("touch made"), command("test ! -e made")]
    assert (await judge({"kind": "all_of", "checks": parts})).verdict == "passed"


def test_verdicts_are_three_valued() -> None:
    assert all_verdict(["passed", "errored", "failed"]) == "failed"
    assert all_verdict(["passed", "errored"]) == "errored"
    assert any_verdict(["failed", "errored"]) == "errored"
    assert any_verdict(["failed", "errored", "passed"]) == "passed"
    assert any_verdict(["failed"]) == "failed"


async def test_nothing_in_the_users_repository_changes(judge: Any, source: Path) -> None:
    before = git(source, "status", "--porcelain"), git(source, "for-each-ref")
    await judge(command("echo x > app.py; rm -rf README.md"))
    assert (git(source, "status", "--porcelain"), git(source, "for-each-ref")) == before
