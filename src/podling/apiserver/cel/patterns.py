"""Regular expressions of a client, in RE2's syntax: that is Go's, and costs no more than the text is long."""

from __future__ import annotations

import re
from typing import Any

_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""Go's words for a fault, by those of the library."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def pattern_fault(pattern: str) -> str:
    """Why Go cannot compile a pattern; empty if it can."""
    if any(found[1] == "C" for found in _ESCAPED.finditer(pattern)):
        # Any byte: the library knows it, Go does not.
        return "error parsing regexp: invalid escape sequence: `\\C`"
    try:
        compiled(pattern)
    except ValueError as error:
        what, _, where = str(error).partition(": ")
        if what.startswith("trailing \\"):
            what, where = "trailing backslash at end of expression", ""
        return f"error parsing regexp: {_WORDS.get(what, what)}: `{where}`"
    return ""


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in `text`. Raises ValueError for one that has a fault."""
    return compiled(pattern).search(text) is not None


def compiled(pattern: str) -> Any:
    """A pattern to be used often. Raises ValueError in the words of the library."""
    # Most servers never see a schema.
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None
    finally:
        # The library would keep 128 patterns, of 8 MB each if somebody wants that.
        re2.purge()
