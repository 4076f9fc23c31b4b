"""Reads: ranges, ceilings, what is no text, what could hang."""

import asyncio
import os
import socket
import struct
import zlib
from pathlib import Path

import pytest

from io_harness.activities.gate import Refused
from io_harness.activities.tools import read_file
from io_harness.activities.tools.errors import (
    BinaryFile,
    BrokenLink,
    IsADirectory,
    NoMatch,
    NotADirectory,
    NotARegularFile,
    NotFound,
    TooLarge,
)
from io_harness.workflows.payloads import INLINE_OUTPUT_BYTES
from tests.unit.tools.conftest import Call

PATIENCE = 10.0
"""Seconds; a read that hangs would take for ever."""


def png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\0")
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


async def test_ranges(root: Path, call: Call) -> None:
    (root / "f").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    whole = await call("read_file", path="f")
    assert whole.text.startswith("[f: 10 lines, version ")
    assert whole.text.endswith("10\tline 10")
    part = await call("read_file", path="f", start_line=3, end_line=4)
    assert part.text.split("\n")[1:] == ["3\tline 3", "4\tline 4"]
    assert "3-4 of 10 lines" in part.text
    assert (await call("read_file", path="f", start_line=9, end_line=99)).text.endswith("line 10")
    for start, end in ((11, None), (5, 4)):
        with pytest.raises(NoMatch, match="10 lines"):
            await call("read_file", path="f", start_line=start, end_line=end)


async def test_what_is_unusual_is_said(root: Path, call: Call) -> None:
    cases = {
        b"": "0 lines",
        b"a\r\nb\r\n": "2 lines, CRLF",
        b"a\r\nb\n": "mixed line ends",
        b"a": "1 lines, no final newline",
        b"caf\xe9\n": "cp1252",
        b"\xef\xbb\xbfa\n": "utf-8 with byte order mark",
        "\ufeffa\n".encode("utf-16-le"): "utf-16-le with byte order mark",
        "äöü".encode() + b"\xff\n": "utf-8 with stray bytes",
    }
    for data, said in cases.items():
        (root / "f").write_bytes(data)
        assert said in (await call("read_file", path="f")).text.split("\n")[0]
    assert "\täöü\\xff" in (await call("read_file", path="f")).text


async def test_too_much_is_refused_with_the_size_and_a_hint(root: Path, call: Call) -> None:
    (root / "f").write_text("".join(f"{n:07}\n" for n in range(10_000)))
    with pytest.raises(TooLarge, match=r"of 10000 in f are [\d,]+ bytes.*end_line=") as refusal:
        await call("read_file", path="f")
    end = int(refusal.value.message.rsplit("end_line=", 1)[1].split(",")[0])
    part = await call("read_file", path="f", start_line=1, end_line=end)
    assert INLINE_OUTPUT_BYTES * 0.9 < len(part.text.encode()) <= INLINE_OUTPUT_BYTES
    (root / "long").write_text("x" * 100_000)
    with pytest.raises(TooLarge, match="line 1 alone has"):
        await call("read_file", path="long")
    (root / "huge").touch()
    os.truncate(root / "huge", 1 << 33)
    with pytest.raises(TooLarge, match=r"8,589,934,592 bytes.*run_command"):
        await call("read_file", path="huge")


async def test_images(root: Path, data_dir: Path, call: Call) -> None:
    from io_harness.activities.store import SnapshotStore

    store = SnapshotStore(data_dir)
    await store.ready()
    (root / "dot.png").write_bytes(png())
    shown = await call("read_file", path="dot.png")
    (image,) = shown.images
    assert image.media_type == "image/png"
    assert await store.get_blob(image.blob) == png()
    (root / "big.jpg").write_bytes(b"\xff\xd8\xff" + bytes(4_000_000))
    with pytest.raises(TooLarge, match="image of 4,000,003 bytes"):
        await call("read_file", path="big.jpg")
    assert read_file.image_type(b"RIFF\0\0\0\0WEBP") == "image/webp"
    assert read_file.image_type(b"RIFF\0\0\0\0WAVE") is None


async def test_what_is_no_text_is_told_apart_and_never_hangs(root: Path, call: Call) -> None:
    (root / "dir").mkdir()
    (root / "file").write_text("x")
    (root / "binary").write_bytes(b"\x7fELF\0\0")
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(root, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        cases: dict[str, tuple[type[Exception], str]] = {
            "dir": (IsADirectory, "list_files"),
            "file/x": (NotADirectory, "a part of"),
            "binary": (BinaryFile, r"6 bytes, begins with 7f 45 4c 46"),
            "broken": (BrokenLink, "nowhere"),
            "fifo": (NotARegularFile, "a FIFO"),
            "socket": (NotARegularFile, "a socket"),
            "none": (NotFound, "does not exist"),
            "a\0b": (NotFound, "NUL"),
            "x" * 300: (Exception, "too long"),
        }
        for path, (error, message) in cases.items():
            with pytest.raises(error, match=message):
                await asyncio.wait_for(call("read_file", path=path), PATIENCE)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may make devices")
async def test_a_device_is_not_opened(root: Path, call: Call) -> None:
    try:
        os.mknod(root / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("devices can't be made here")
    with pytest.raises(NotARegularFile, match="a character device"):
        await asyncio.wait_for(call("read_file", path="zero"), PATIENCE)


async def test_secrets_are_refused_by_their_resolved_name(root: Path, call: Call) -> None:
    (root / ".env").write_text("KEY=1\n")
    (root / "harmless").symlink_to(".env")
    for path in (".env", "harmless", "./x/../.env" if (root / "x").mkdir() is None else ""):
        with pytest.raises(Refused):
            await call("read_file", path=path)
    (root / "env.txt").write_text("KEY=1\n")
    assert "KEY=1" in (await call("read_file", path="env.txt")).text


async def test_list_files(root: Path, call: Call) -> None:
    (root / "b").mkdir()
    (root / "b/inner").write_text("")
    (root / "a.py").write_text("")
    (root / ".hidden").write_text("")
    (root / ".env").write_text("")
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "fifo")
    listing = (await call("list_files")).text.split("\n")
    assert listing == [
        ".hidden", "a.py", "b/", "fifo [FIFO]", "link -> /etc/passwd",
        "[5 entries in .; 1 withheld by the policy]",
    ]  # fmt: skip
    assert "b/\nb/inner\nfifo" in (await call("list_files", depth=2)).text
    assert (await call("list_files", path="b")).text == "inner\n[1 entries in b]"
    page = (await call("list_files", offset=1, limit=2)).text
    assert page.startswith("a.py\nb/\n[5 entries")
    assert "next offset 3" in page
    with pytest.raises(NotADirectory):
        await call("list_files", path="a.py")
