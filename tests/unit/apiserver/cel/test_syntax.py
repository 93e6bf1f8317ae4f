"""What is said of an expression that is none: what kube-apiserver 1.36.2 says."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podling.apiserver.cel.compilation import parsed_or_fault
from podling.apiserver.cel.room import with_room
from podling.apiserver.cel.syntax import syntax_faults

EXPRESSIONS = Path(__file__).parents[3].joinpath("peer/expressions.txt").read_text().splitlines()
VALUES = "true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
VALUE = f"expecting {{'[', '{{', '(', '.', '-', '!', '{VALUES}"
ITEM = f"expecting {{'[', ']', '{{', '(', '.', ',', '-', '!', '?', '{VALUES}"
FIELD = "expecting {IDENTIFIER, ESC_IDENTIFIER}"
TOKEN = "token recognition error at:"


def told(text: str) -> str:
    tree, fault = with_room(lambda: parsed_or_fault(text))
    assert (tree is None) == bool(fault)
    return fault.removeprefix("compilation failed: ")


def messages(text: str) -> list[str]:
    said = [line for line in told(text).splitlines() if not line.startswith(" | ")]
    return [line.removeprefix("ERROR: <input>:").replace("Syntax error: ", "") for line in said]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", [f"1:2: mismatched input '<EOF>' {ITEM}"]),
        ("(-2", ["1:4: missing ')' at '<EOF>'"]),
        ("-", ["1:2: no viable alternative at input '-'", f"1:2: mismatched input '<EOF>' {VALUE}"]),
        ("f(1 2)", ["1:5: extraneous input '2' expecting ')'"]),
        ("a{b}", ["1:4: mismatched input '}' expecting ':'"]),
        ("a.true", ["1:3: mismatched input 'true' expecting IDENTIFIER"]),
        ("a.in", ["1:3: no viable alternative at input '.in'", f"1:5: mismatched input '<EOF>' {VALUE}"]),
        ("a.?", [f"1:4: mismatched input '<EOF>' {FIELD}", "1:4: unsupported ident kind"]),
        ("a.`b`", ["1:3: unsupported syntax: '`'"]),
        ("a{?`b`: 1}", ["1:3: unsupported syntax: '`'"]),
        ("{has(a.`b`.c", ["1:13: mismatched input '<EOF>' expecting ')'"]),
        ("`a-b`", [f"1:1: mismatched input '`a-b`' {VALUE}"]),
        ("1 & 2", ["1:3: " + TOKEN + " '& '", "1:5: extraneous input '2' expecting <EOF>"]),
        ("1 '\\x1g'", [f"1:3: {TOKEN} ''\\x1g'", f"1:8: {TOKEN} '''"]),
        ("[a.](", ["1:4: no viable alternative at input '.]'", "1:5: extraneous input '(' expecting <EOF>"]),
        ("has(a) + )", ["1:5: invalid argument to has() macro", f"1:10: mismatched input ')' {VALUE}"]),
        ("has(a.b{c: 1})", ["1:8: invalid argument to has() macro"]),
    ],
)  # fmt: skip
def test_what_is_said(text: str, said: Sequence[str]) -> None:
    assert messages(text) == said


def test_the_line_of_a_fault_is_shown_if_it_is_empty() -> None:
    where = "\n | \n | ^"
    assert told("f(-\n") == (
        f"ERROR: <input>:2:1: Syntax error: no viable alternative at input '-\\n'{where}\n"
        f"ERROR: <input>:2:1: Syntax error: mismatched input '<EOF>' {VALUE}{where}"
    )


def test_what_is_no_token_is_shown_as_it_is() -> None:
    assert told("'a\n' + 1").startswith(f"ERROR: <input>:1:1: Syntax error: {TOKEN} ''a\n'\n | 'a\n | ^\n")


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 100, 240])
def test_depth_changes_nothing(depth: int) -> None:
    text = "(" * depth + "[1].all(x, x ==)" + ")" * depth
    assert messages(text) == [f"1:{depth + 16}: mismatched input ')' {VALUE}"]


@pytest.mark.parametrize("depth", [251, 1_000, 50_000])
def test_what_is_nested_too_deep_is_not_read_on(depth: int) -> None:
    assert messages("(" * depth) == ["-1:0: expression recursion limit exceeded: 250"]


def test_it_goes_on_after_thirty_faults() -> None:
    text = "[" * 25 + "ip'\\q''a')" + "]" * 25
    assert messages(text) == [
        f"1:28: {TOKEN} ''\\q'",
        "1:31: mismatched input '''' expecting {']', ','}",
        f"1:34: {TOKEN} '')]]]]]]]]]]]]]]]]]]]]]]]]]'",
        "1:61: error recovery attempt limit exceeded: 30",
    ]


def test_it_leaves_out_256_tokens_for_a_fault() -> None:
    assert messages("1 " * 257) == ["1:3: mismatched input '1' expecting <EOF>"]
    assert messages("1 " * 258)[0] == "-1:0: error recovery token lookahead limit exceeded: 256"


def test_it_tells_of_a_hundred_faults() -> None:
    text = "\n".join("$" * 120)
    assert messages(text)[99:] == [f"100:1: {TOKEN} '$'", "1 more errors were truncated"]


def test_what_the_library_takes_has_no_fault() -> None:
    right = [text for text in EXPRESSIONS if parsed_or_fault(text)[0] is not None]
    assert len(right) > 400
    assert not {text: found for text in right if (found := syntax_faults(text))}


def test_two_may_ask_at_once() -> None:
    texts = [f"{'[' * depth}1 1{']' * depth} +" for depth in range(20)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(told, texts)) == list(map(told, texts))
