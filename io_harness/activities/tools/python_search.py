"""Stands in for ripgrep where there is none. Runs as a script of its own, so that it can be held and
stopped like a command. Prints the same JSON lines as `rg --json`, or the names that
`rg --files --null` prints.

Usage: python python_search.py REQUEST, where REQUEST is the JSON of a `SearchRequest`.
"""

import base64
import io
import json
import os
import re
import sys
from collections import deque
from collections.abc import Iterator
from typing import IO, Any

from pathspec import GitIgnoreSpec

Specs = list[tuple[str, GitIgnoreSpec]]
_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 20


def main(request: dict[str, Any]) -> int:
    try:
        pattern = compile_pattern(request) if request["pattern"] is not None else None
    except re.error as error:
        print(f"regex parse error: {error}")  # noqa: T201
        return 2
    name = re.compile(request["name_regex"]) if request["name_regex"] else None
    searched = found = 0
    for path in candidates(request):
        if name is not None and not name.match(os.path.basename(path)):
            continue
        searched += 1
        if pattern is None:
            sys.stdout.buffer.write(b"./" + os.fsencode(path) + b"\0")
        else:
            found += search(path, pattern, request["context"])
    if pattern is not None:
        emit("summary", {"stats": {"searches": searched, "matched_lines": found}})
    return 0 if (found or pattern is None) else 1


def compile_pattern(request: dict[str, Any]) -> re.Pattern[str]:
    text = re.escape(request["pattern"]) if request["literal"] else request["pattern"]
    return re.compile(text, re.IGNORECASE if request["ignore_case"] else 0)


def candidates(request: dict[str, Any]) -> Iterator[str]:
    """Files in order of their paths, name by name."""
    start: str = request["path"]
    if os.path.isfile(start):
        yield start
        return
    specs = [] if request["ignored"] or request["forced"] else above(start)
    yield from walk("" if start == "." else start, specs, honour=not request["ignored"])


def parents(start: str) -> list[str]:
    parts = [] if start == "." else start.split("/")
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def above(start: str) -> Specs:
    folders = ["", *parents(start)[:-1]]
    return [spec for folder in folders for spec in spec_of(folder)] if start != "." else []


def spec_of(folder: str) -> Specs:
    try:
        with open(os.path.join(folder, ".gitignore"), encoding="utf-8", errors="replace") as file:
            return [(folder, GitIgnoreSpec.from_lines(file))]
    except OSError:
        return []


def walk(folder: str, specs: Specs, honour: bool) -> Iterator[str]:
    specs = [*specs, *spec_of(folder)] if honour else []
    try:
        entries = sorted(os.scandir(folder or "."), key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or ignored(path, specs, is_folder):
            continue
        if is_folder:
            yield from walk(path, specs, honour)
        elif entry.is_file(follow_symlinks=False):
            yield path


def ignored(path: str, specs: Specs, is_folder: bool) -> bool:
    """The deepest `.gitignore` that says anything decides."""
    for folder, spec in reversed(specs):
        inner = path[len(folder) + 1 :] if folder else path
        result = spec.check_file(f"{inner}/" if is_folder else inner)
        if result.include is not None:
            return result.include
    return False


def search(path: str, pattern: re.Pattern[str], context: int) -> int:
    try:
        file = open(path, "rb")  # noqa: SIM115
    except OSError:
        return 0
    with file:
        head = file.read(_CHUNK)
        stream: IO[bytes] = file
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            stream = io.BytesIO((head + file.read()).decode("utf-16", "replace").encode())
        else:
            file.seek(3 if head.startswith(b"\xef\xbb\xbf") else 0)
        return matches(path, iter(lambda: stream.readline(_LONGEST_LINE), b""), pattern, context)


def matches(path: str, lines: Iterator[bytes], pattern: re.Pattern[str], context: int) -> int:
    name = blob(os.fsencode(path))
    before: deque[tuple[int, bytes]] = deque(maxlen=context)
    after = count = offset = 0
    binary: int | None = None
    for number, line in enumerate(lines, 1):
        if binary is None and (at := line.find(b"\0")) >= 0:
            binary = offset + at
        offset += len(line)
        text = line.decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
        hit = pattern.search(text)
        if hit is None:
            if after and count:
                after -= 1
                emit("context", {"path": name, "lines": blob(line), "line_number": number})
            else:
                before.append((number, line))
            continue
        if not count:
            emit("begin", {"path": name})
        count += 1
        for earlier, passed in before:
            emit("context", {"path": name, "lines": blob(passed), "line_number": earlier})
        before.clear()
        after = context
        start = len(text[: hit.start()].encode("utf-8", "surrogateescape"))
        shown = {"path": name, "lines": blob(line), "line_number": number}
        emit("match", {**shown, "submatches": [{"start": start}]})
        if binary is not None:
            break
    if count:
        emit("end", {"path": name, "binary_offset": binary, "stats": {"matched_lines": count}})
    return count


def blob(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def emit(kind: str, data: dict[str, Any]) -> None:
    print(json.dumps({"type": kind, "data": data}, separators=(",", ":")), flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
