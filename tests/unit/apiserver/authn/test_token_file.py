"""Issue 13: tokens of a file."""

from __future__ import annotations

import pytest

from podling.apiserver.authn.token_file import TokenFile, read_tokens
from podling.apiserver.request.request import Request, User

FILE = 'a,ann,1\nb,bob,2,"devs,ops"\n\nc,cid,3,devs\n,nobody,4\na,eve,5\n'


@pytest.mark.parametrize(
    ("token", "user"),
    [
        ("a", User("eve", ("system:authenticated",), "5")),
        ("b", User("bob", ("devs", "ops", "system:authenticated"), "2")),
        ("c", User("cid", ("devs", "system:authenticated"), "3")),
        ("", None),
        ("d", None),
    ],
)
def test_whose_token(token: str, user: User | None) -> None:
    known = TokenFile(read_tokens(FILE, "tokens.csv"))
    assert known.authenticate(Request("GET", "/", headers={"Authorization": f"Bearer {token}"})) == user


def test_a_line_with_too_few_columns() -> None:
    why = r"token file 'tokens.csv' must have at least 3 columns \(token, user name, user uid\), found 2"
    with pytest.raises(ValueError, match=why):
        read_tokens("a,ann,1\nb,bob\n", "tokens.csv")


@pytest.mark.parametrize("text", ['"a,ann,1\n', 'a,"x"y,1\n'])
def test_a_broken_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"token file 't', line \d: "):
        read_tokens(text, "t")
