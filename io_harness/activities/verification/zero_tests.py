"""Recognises that a test runner ran no test at all.

An exit code of 0 says nothing then: a filter that matches nothing, a deleted file or a skip on every
test would pass.
"""

import re
from collections.abc import Callable

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

_PYTEST = re.compile(
    r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+|no tests ran) in [\d.]+s\b.*$", re.MULTILINE
)
_PYTEST_RAN = ("passed", "failed", "error", "errors", "xfailed", "xpassed")
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_UNITTEST_SKIPPED = re.compile(r"^(?:OK|FAILED|NO TESTS RAN) \(.*?skipped=(\d+)", re.MULTILINE)
_GO_RAN = re.compile(r"^(?:ok|FAIL|---)[ \t].*$", re.MULTILINE)
_GO_NONE = re.compile(r"\[no test files\]|\[no tests to run\]|no tests to run")


def ran_no_tests(output: str) -> bool:
    """Whether a known runner says that it ran nothing, and none says that it ran something. Skipped
    tests were not run."""
    text = _ANSI.sub("", output)
    counts = [count for runner in RUNNERS if (count := runner(text)) is not None]
    return bool(counts) and sum(counts) == 0


def _pytest(text: str) -> int | None:
    found = _PYTEST.findall(text)
    if not found:
        return 0 if re.search(r"^collected 0 items\b", text, re.MULTILINE) else None
    return sum(
        int(count)
        for summary in found
        for count, what in _COUNT.findall(summary)
        if what in _PYTEST_RAN
    )


def _unittest(text: str) -> int | None:
    ran = _UNITTEST.findall(text)
    if not ran:
        return None
    return sum(map(int, ran)) - sum(map(int, _UNITTEST_SKIPPED.findall(text)))


def _go(text: str) -> int | None:
    none = _GO_NONE.search(text)
    if none is None:
        return None
    return sum(1 for line in _GO_RAN.findall(text) if not _GO_NONE.search(line))


def _summed(pattern: str) -> Callable[[str], int | None]:
    """Counts where each match's groups are numbers of tests that ran."""
    compiled = re.compile(pattern, re.MULTILINE)

    def count(text: str) -> int | None:
        found = compiled.findall(text)
        if not found:
            return None
        groups = (match if isinstance(match, tuple) else (match,) for match in found)
        return sum(int(number or 0) for match in groups for number in match)

    return count


def _says(pattern: str) -> Callable[[str], int | None]:
    """Runners that have a sentence for it."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda text: 0 if compiled.search(text) else None


RUNNERS: tuple[Callable[[str], int | None], ...] = (
    _pytest,
    _unittest,
    _go,
    _summed(r"^test result: \w+\. (\d+) passed; (\d+) failed;"),  # cargo test
    _summed(r"^\s*Summary \[.*?\] +(\d+) tests? run:"),  # cargo nextest
    _summed(r"^(?:# |ℹ )pass (\d+)\n(?:# |ℹ )fail (\d+)$"),  # node --test
    _summed(r"^Tests:(?=.*\btotal\b)(?:.*?(\d+) failed)?(?:.*?(\d+) passed)?.*$"),  # jest
    _summed(r"^ +Tests  (?:(\d+) failed)?(?: \| )?(?:(\d+) passed)?.*\(\d+\)$"),  # vitest
    _summed(r"^ {2}(\d+) (?:passing|failing)\b"),  # mocha
    _summed(r"^ *(\d+) (?:pass|fail)$"),  # bun
    _summed(r"^(?:ok|FAILED) \| (\d+) passed.*?(?: \| (\d+) failed)?"),  # deno
    _summed(r"^Tests run: (\d+), Failures: \d+, Errors: \d+"),  # surefire, JUnit
    _summed(r"^(\d+) examples?, \d+ failures?"),  # rspec
    _summed(r"^(\d+) (?:runs|tests), \d+ (?:assertions|failures)"),  # minitest, ExUnit
    _summed(r"Executed (\d+) tests?, with"),  # swift test
    _summed(r"^1\.\.(\d+)$"),  # TAP: bats, prove
    _summed(r"^(?:Passed|Failed)!\s+- Failed:\s+(\d+), Passed:\s+(\d+)"),  # dotnet test
    _summed(r"^\d+% tests passed, \d+ tests? failed out of (\d+)"),  # ctest
    _says(r"^No tests found"),  # jest
    _says(r"^No test files found"),  # vitest
    _says(r"^No tests were found!!!"),  # ctest
    _says(r"^No tests executed!"),  # phpunit
    _says(r"No test is available in|No test matches the given"),  # dotnet test
    _says(r"^(?:error: )?No test modules found"),  # deno
    _says(r"^NO TESTS RAN\b"),  # unittest
    _says(r"^There are no tests to run"),  # ExUnit
)
