"""What stays the same in a transcript whoever runs the demo, and the transcript in README.md.

python examples/neato/transcript.py FILE     puts a transcript into README.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- transcript of scripts/demo.sh -->", "<!-- end of transcript -->"

DIFFERS = (
    (r" --data-dir \S+| --port \d+| --registry-mirror \S+", ""),
    (r"[^\s=]+(?=/admin\.conf|/demo/)", "DATA"),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
    (r"debugger-\w{5}", "debugger-NAME"),
)


def steps(transcript: str) -> list[str]:
    """Everything narrated and typed, in order, without what differs from run to run."""
    lines = re.findall(r"^(?:# .*|\$ .*|/ # .+)", transcript, re.MULTILINE)
    return [_same(line) for line in lines]


def in_readme(readme: str) -> str:
    """The transcript the README shows."""
    begin, end = _place(readme)
    return readme[begin:end]


def put(readme: str, transcript: str) -> str:
    begin, end = _place(readme)
    return f"{readme[:begin]}{transcript.strip()}\n{readme[end:]}"


def _place(readme: str) -> tuple[int, int]:
    opening = f"{BEGIN}\n```console\n"
    begin = readme.index(opening) + len(opening)
    return begin, readme.index(f"```\n{END}", begin)


def _same(line: str) -> str:
    for pattern, replacement in DIFFERS:
        line = re.sub(pattern, replacement, line)
    return line


if __name__ == "__main__":
    README.write_text(put(README.read_text(), Path(sys.argv[1]).read_text()))
