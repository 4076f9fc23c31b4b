"""What test runners print when they ran nothing, and when they ran something."""

import pytest

from io_harness.activities.verification.zero_tests import ran_no_tests

NOTHING = {
    "pytest": "collected 0 items\n\n============ no tests ran in 0.02s ============",
    "pytest -q": "\nno tests ran in 0.00s\n",
    "pytest, all skipped": "sss   [100%]\n3 skipped in 0.02s",
    "pytest, all deselected": "======= 12 deselected in 0.31s =======",
    "pytest, warnings only": "===== 2 skipped, 1 warning in 0.02s =====",
    "unittest": "\nRan 0 tests in 0.000s\n\nOK",
    "unittest, 3.12": "\nRan 0 tests in 0.000s\n\nNO TESTS RAN",
    "unittest, all skipped": "ss\nRan 2 tests in 0.000s\n\nOK (skipped=2)",
    "node, tap": "1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0",
    "node, spec": "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\nℹ cancelled 0",
    "jest": "No tests found, exiting with code 0",
    "jest, all skipped": "Tests:       3 skipped, 3 total\nSnapshots:   0 total",
    "vitest": "No test files found, exiting with code 0",
    "vitest, all skipped": " Test Files  1 skipped (1)\n      Tests  3 skipped (3)",
    "mocha": "\n  0 passing (1ms)\n",
    "go": "?   \texample.org/a\t[no test files]\n?   \texample.org/b\t[no test files]",
    "go -run": "testing: warning: no tests to run\nPASS\nok  \texample.org/a\t0.002s [no tests to run]",
    "cargo": "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured",
    "ctest": "No tests were found!!!",
    "surefire": "Tests run: 0, Failures: 0, Errors: 0, Skipped: 0",
    "rspec": "Finished in 0.0 seconds\n0 examples, 0 failures",
    "phpunit": "No tests executed!",
    "minitest": "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips",
    "ExUnit": "There are no tests to run",
    "bats": "1..0",
    "deno": "ok | 0 passed | 0 failed (2ms)",
    "swift": "Executed 0 tests, with 0 failures (0 unexpected) in 0.000 seconds",
    "bun": " 0 pass\n 0 fail\nRan 0 tests across 0 files. [5.00ms]",
    "coloured": "\x1b[33m\x1b[33mno tests ran\x1b[0m\x1b[33m in 0.01s\x1b[0m",
}

SOMETHING = {
    "pytest": "===== 3 passed, 1 skipped in 0.12s =====",
    "pytest -q": "...\n3 passed in 0.01s",
    "pytest, long": "=== 3 passed in 75.03s (0:01:15) ===",
    "pytest, failed": "1 failed, 2 skipped in 0.10s",
    "pytest, error": "===== 1 error in 0.10s =====",
    "unittest": "Ran 3 tests in 0.001s\n\nOK (skipped=1)",
    "node": "# tests 2\n# pass 2\n# fail 0",
    "jest": "Tests:       1 failed, 2 passed, 3 total",
    "jest, passed": "Tests:       2 passed, 2 total",
    "vitest": " Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)",
    "mocha": "  12 passing (1s)\n  0 failing",
    "go": "?   \texample.org/a\t[no test files]\nok  \texample.org/b\t0.003s",
    "go, failed": "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\ta/b\t0.003s\n?   \ta\t[no test files]",
    "cargo": "test result: ok. 4 passed; 0 failed;\n\ntest result: ok. 0 passed; 0 failed;",
    "surefire": "Tests run: 4, Failures: 0, Errors: 0, Skipped: 0",
    "rspec": "3 examples, 0 failures",
    "two runners": "Ran 0 tests in 0.000s\n\nOK\n3 passed in 0.01s",
    "bats": "1..2\nok 1 x\nok 2 y",
    "bun": " 3 pass\n 0 fail\nRan 3 tests across 1 file.",
    "ctest": "100% tests passed, 0 tests failed out of 4",
    "no runner at all": "all is well",
    "nothing": "",
    "words only": "there were 0 errors and no tests ran into trouble in production",
}


@pytest.mark.parametrize("output", NOTHING.values(), ids=NOTHING.keys())
def test_nothing_ran(output: str) -> None:
    assert ran_no_tests(output)


@pytest.mark.parametrize("output", SOMETHING.values(), ids=SOMETHING.keys())
def test_something_ran_or_nobody_says(output: str) -> None:
    assert not ran_no_tests(output)
