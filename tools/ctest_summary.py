#!/usr/bin/env python3
"""Prints "N passed, N failed, N skipped" for a JUnit file: of ctest (--output-junit FILE), or of a
test program of GoogleTest (--gtest_output=xml:FILE).

A test that was disabled or asked to be skipped is skipped; one whose program is missing has failed.
"""

import sys
import xml.etree.ElementTree as xml
from collections import Counter


def outcome(case: xml.Element) -> str:
    status = case.get("status", "run")
    if status == "run":
        if case.find("failure") is not None:
            return "failed"
        return "skipped" if case.get("result") == "skipped" else "passed"
    reason = case.find("skipped")
    if status == "notrun" and reason is None:  # a disabled test, in a file of GoogleTest
        return "skipped"
    message = reason.get("message", "") if reason is not None else ""
    asked = status == "disabled" or message.startswith(("SKIP_", "Disabled"))
    return "skipped" if status != "fail" and asked else "failed"


def main() -> int:
    if len(sys.argv) != 2:
        print("usage: ctest_summary.py FILE.xml", file=sys.stderr)
        return 2
    try:
        suite = xml.parse(sys.argv[1]).getroot()
    except (OSError, xml.ParseError) as error:
        print(f"{sys.argv[1]}: {error}; did ctest run?", file=sys.stderr)
        return 1
    counts = Counter(outcome(case) for case in suite.iter("testcase"))
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
