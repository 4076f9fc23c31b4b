"""Outputs: capped, kept whole, and read only by the run that made them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from io_harness.activities.outputs import NoSuchOutput, RunOutputs
from io_harness.activities.prompt import system_prompt
from io_harness.activities.tools.errors import UnknownHandle
from io_harness.activities.tools.registry import ToolRegistry
from io_harness.workflows.messages import Observation
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES
from io_harness.workflows.stubs import STUBBED_OVER_BYTES
from tests.unit.tools.conftest import Call, make_contract


def test_what_fits_is_whole(tmp_path: Path) -> None:
    outputs = RunOutputs(tmp_path, "run-1")
    text = "ü" * (INLINE_OUTPUT_BYTES // 2)
    seen = outputs.observe(text)
    assert (seen.text, seen.spill, seen.omitted_bytes) == (text, None, 0)
    assert not tmp_path.joinpath("outputs", "run-1").exists()


@pytest.mark.parametrize("text", ["line\n" * 20_000, "ü" * 50_000, "x" * 50_000 + "\nend\n"])
def test_what_does_not_fit_is_cut_between_characters(text: str, tmp_path: Path) -> None:
    outputs = RunOutputs(tmp_path, "run-1")
    seen = outputs.observe(text)
    assert len(seen.text.encode()) <= INLINE_OUTPUT_BYTES
    assert "\ufffd" not in seen.text
    head, rest = seen.text.split("[... ", 1)
    tail = rest.split(" ...]\n", 1)[1]
    assert text.startswith(head.rstrip("\n"))
    assert text.endswith(tail)
    whole = len(text.encode())
    assert seen.omitted_bytes == whole - len(head.encode()) - len(tail.encode()) + (
        0 if text.startswith(head) else 1
    )
    assert seen.spill is not None
    assert outputs.page(seen.spill, 0, whole).text == text
    assert outputs.observe(text).spill == seen.spill, "a repeated call gets another handle"


def test_what_may_become_a_stub_is_kept(tmp_path: Path) -> None:
    outputs = RunOutputs(tmp_path, "run-1")
    short = Observation(text="x" * STUBBED_OVER_BYTES)
    assert outputs.keep(short) == short
    kept = outputs.keep(Observation(text="x" * (STUBBED_OVER_BYTES + 1), is_error=True))
    assert (len(kept.text), kept.omitted_bytes, kept.is_error) == (STUBBED_OVER_BYTES + 1, 0, True)
    assert kept.spill is not None
    assert outputs.page(kept.spill, 0, 1_000_000).text == kept.text
    cut = outputs.observe("x" * 100_000)
    assert outputs.keep(cut) == cut


@given(st.text(min_size=1), st.integers(1, 50))
def test_pages_join_to_the_whole(text: str, limit: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        outputs = RunOutputs(Path(folder), "r")
        with outputs.recorder(inline_bytes=512) as recorder:
            recorder.write((text * (600 // len(text) + 1)).encode("utf-8", "replace"))
        handle = recorder.observation().spill
        assert handle is not None
        whole = (text * (600 // len(text) + 1)).encode("utf-8", "replace")
        offset, joined = 0, b""
        while offset < len(whole):
            page = outputs.page(handle, offset, limit + 4)
            assert page.end > offset
            joined += page.text.encode()
            offset = page.end
        assert joined == whole


@pytest.mark.parametrize(
    "handle",
    ["../run-2/out-0123456789abcdef", "/etc/passwd", "out-0123456789abcdef/../x", "part-0", "",
     "out-0123456789abcdef\n", "..", "out-0123456789ABCDEF"],
)  # fmt: skip
def test_a_handle_never_leads_elsewhere(handle: str, tmp_path: Path) -> None:
    with pytest.raises(NoSuchOutput):
        RunOutputs(tmp_path, "run-1").page(handle, 0, 100)


async def test_another_runs_output_is_not_readable(data_dir: Path, call: Call) -> None:
    theirs = RunOutputs(data_dir, "run-2").observe("x" * 100_000).spill
    with pytest.raises(UnknownHandle):
        await call("read_output", handle=theirs)
    ours = RunOutputs(data_dir, "run-1").observe("x" * 100_000).spill
    assert "xxx" in (await call("read_output", handle=ours)).text


def test_a_link_in_the_place_of_an_output_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "outputs/run-1"
    folder.mkdir(parents=True)
    (folder / "out-0123456789abcdef").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links"):
        RunOutputs(tmp_path, "run-1").page("out-0123456789abcdef", 0, 100)


def test_the_first_request_is_small_and_always_the_same() -> None:
    """2,500 tokens, at the three characters a token that JSON and English never go below."""

    def described() -> str:
        contract = make_contract()
        specs = ToolRegistry().specs(contract)
        tools = [{"name": s.name, "description": s.description, "input_schema": s.input_schema}
                 for s in specs]  # fmt: skip
        return system_prompt(contract) + json.dumps(tools)

    assert len(described()) / 3 <= 2_500
    assert described() == described()
