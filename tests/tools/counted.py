"""Runs a suite and closes with the line that scripts/test.sh adds up."""

import sys
import unittest


def run_counted(suite: unittest.TestSuite) -> int:
    """Prints "N passed, N failed, N skipped"; returns the exit status. A class or a module that
    could not be prepared counts as one failed test."""
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    broken = [getattr(test, "test_case", test) for test, _ in result.failures + result.errors]
    failed = {test.id() for test in broken}
    ran_and_failed = {test.id() for test in broken if isinstance(test, unittest.TestCase)}
    skipped = len(result.skipped)
    passed = result.testsRun - len(ran_and_failed) - skipped
    print(f"{passed} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0
