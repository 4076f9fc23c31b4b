from pathlib import Path

import pytest
from jsonschema import ValidationError, validate

from io_harness.activities.tools.errors import InvalidArguments, OutsideWorkspace, UnknownTool
from io_harness.activities.tools.registry import ToolRegistry, finish_spec
from tests.unit.tools.conftest import Call, make_contract


async def test_each_tool_does_its_job(root: Path, call: Call) -> None:
    assert "created src/a.py" in (await call("write_file", path="src/a.py", content="x = 1\n")).text
    assert "1\tx = 1" in (await call("read_file", path="src/a.py")).text
    await call("edit_file", path="src/a.py", old="x = 1", new="x = 2")
    assert (root / "src/a.py").read_bytes() == b"x = 2\n"
    assert "src" in (await call("list_files")).text
    assert "src/a.py" in (await call("find", glob="*.py")).text
    assert "src/a.py\n1: x = 2" in (await call("grep", pattern="x = [0-9]")).text
    done = await call("run_command", command="echo hello; exit 3")
    assert "exit 3" in done.text
    assert "hello" in done.text


async def test_bad_arguments_name_the_field(call: Call) -> None:
    with pytest.raises(InvalidArguments, match="content: Field required"):
        await call("write_file", path="a")
    with pytest.raises(InvalidArguments, match="content: Input should be a valid string"):
        await call("write_file", path="a", content=None)
    with pytest.raises(InvalidArguments, match="mode: Extra inputs"):
        await call("write_file", path="a", content="", mode="w")


async def test_outside_is_refused(call: Call, root: Path) -> None:
    (root / "src").mkdir()
    (root / "out").symlink_to("/etc")
    for path in ("../x", "/etc/passwd", "out/passwd", "src/../../x"):
        with pytest.raises(OutsideWorkspace):
            await call("read_file", path=path)


def test_an_unknown_tool_is_told_the_names() -> None:
    with pytest.raises(UnknownTool, match="read_file"):
        ToolRegistry().get("cat")


def test_a_name_that_collides_fails() -> None:
    taken = ToolRegistry().get("read_file")
    with pytest.raises(ValueError, match="two tools are named 'read_file'"):
        ToolRegistry([taken])


def test_the_first_request_stays_small() -> None:
    specs = ToolRegistry().specs(make_contract())
    names = [spec.name for spec in specs]
    assert names[-1] == "finish"
    assert "answer" not in str(specs[-1].input_schema)


def test_finish_carries_the_schema_of_the_answer_and_is_enforced() -> None:
    asked = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "integer"}},
    }
    check = {"kind": "json_schema", "json_schema": asked}
    for fields in (
        {"output_schema": asked},
        {"verification": check},
        {"verification": {"kind": "all_of", "checks": [{"kind": "command", "run": "true"}, check]}},
    ):
        spec = finish_spec(make_contract(**fields))
        assert spec.enforced
        with pytest.raises(ValidationError, match="not of type 'integer'"):
            validate({"summary": "s", "answer": {"n": "x"}}, dict(spec.input_schema))
        validate({"summary": "s", "answer": {"n": 3}}, dict(spec.input_schema))
    assert not finish_spec(make_contract()).enforced
