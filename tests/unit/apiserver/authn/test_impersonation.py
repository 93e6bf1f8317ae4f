"""R-SYS-4: what the headers of impersonation ask for, and what they may not leave out."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from podling.apiserver.authn.authenticators import is_about_impersonation, wanted_user
from podling.apiserver.request.request import User
from podling.model.errors import StatusError


def wanted(*headers: tuple[str, str]) -> User | None:
    return wanted_user(CIMultiDict([("Accept", "*/*"), *headers]))


def test_nobody_is_asked_for() -> None:
    assert wanted() is None
    assert wanted(("Impersonate-User", "")) is None


def test_everything_that_can_be_asked_for() -> None:
    assert wanted(
        ("impersonate-user", "bob"),
        ("Impersonate-Uid", "u"),
        ("Impersonate-Group", "a"),
        ("IMPERSONATE-GROUP", "b"),
        ("Impersonate-Extra-Scopes", "view"),
        ("Impersonate-Extra-scopes", "edit"),
        ("Impersonate-Extra-Acme.com%2Fproject", "x"),
    ) == User("bob", ("a", "b"), "u", (("scopes", ("view", "edit")), ("acme.com/project", ("x",))))


def test_the_first_name_and_uid_count() -> None:
    twice = [
        ("Impersonate-User", "a"),
        ("Impersonate-User", "b"),
        ("Impersonate-Uid", "1"),
        ("Impersonate-Uid", "2"),
    ]
    assert wanted(*twice) == User("a", (), "1")


def test_a_key_with_a_broken_escape_is_taken_as_it_is_written() -> None:
    found = wanted(("Impersonate-User", "a"), ("Impersonate-Extra-a%2fb%zz", "v"))
    assert found is not None and found.extra == (("a%2fb%zz", ("v",)),)


@pytest.mark.parametrize(
    ("headers", "shown"),
    [
        (
            [("Impersonate-Group", "a"), ("Impersonate-Group", 'b"')],
            'UID:"", Groups:[]string{"a", "b\\""}, Extra:map[string][]string(nil)',
        ),
        ([("Impersonate-Uid", "u")], 'UID:"u", Groups:[]string(nil), Extra:map[string][]string(nil)'),
        (
            [("Impersonate-Extra-b", "1"), ("Impersonate-Extra-a", "2"), ("Impersonate-User", "")],
            'UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"2"}, "b":[]string{"1"}}',
        ),
    ],
)
def test_nothing_without_a_name(headers: list[tuple[str, str]], shown: str) -> None:
    with pytest.raises(StatusError) as raised:
        wanted(*headers)
    error = raised.value
    assert (error.code, error.reason) == (400, "BadRequest")
    assert (
        error.message == f'requested &user.DefaultInfo{{Name:"", {shown}}} without impersonating a user name'
    )


def test_headers_that_are_for_this_server_alone() -> None:
    ours = ["Impersonate-User", "impersonate-extra-x"]
    assert [header for header in (*ours, "Accept", "Impersonate") if is_about_impersonation(header)] == ours
