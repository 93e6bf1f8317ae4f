"""The functions that no test has entered, by file: `make coverage`.

It reads what `coverage run` and `coverage combine` have left. It is about functions and not lines: a line
that no test reaches is seldom news, a function is either dead or lacks a test.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any


def unreached(report: dict[str, Any]) -> Iterator[tuple[str, list[str], int]]:
    """(file, functions never entered, functions of the file) for each file that has such. `report` is that of
    `coverage json`; what has no statements, such as a method of a Protocol, is no function here."""
    for path, file in sorted(report["files"].items()):
        found = {
            name: of for name, of in file["functions"].items() if name and of["summary"]["num_statements"]
        }
        never = [name for name, of in found.items() if not of["executed_lines"]]
        if never:
            yield path, never, len(found)


def main() -> None:
    coverage = [sys.executable, "-m", "coverage", "json", "--quiet", "--ignore-errors", "-o", "-"]
    report = json.loads(subprocess.run(coverage, check=True, capture_output=True).stdout)
    total = 0
    for path, never, functions in unreached(report):
        total += len(never)
        sys.stdout.write(f"{path} ({len(never)} of {functions})\n")
        sys.stdout.writelines(f"    {name}\n" for name in never)
    sys.stdout.write(f"{total} functions that no test has entered\n")


if __name__ == "__main__":
    main()
