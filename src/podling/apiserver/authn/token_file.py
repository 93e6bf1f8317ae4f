"""Tokens of a file, `--token-auth-file`: a line `token,user,uid,"group1,group2"` for each. The file is read
once, as by kube-apiserver.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping

from podling.apiserver.authn.authenticators import authenticated, bearer_token
from podling.apiserver.request.request import Request, User

LEAST = 3


def read_tokens(text: str, name: str) -> dict[bytes, User]:
    """The users, by the digests of their tokens; of two lines with one token the last counts. Raises
    ValueError, which names the file as `name`."""
    users: dict[bytes, User] = {}
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        for record in reader:
            if not record:
                continue
            if len(record) < LEAST:
                columns = "token, user name, user uid"
                raise ValueError(
                    f"token file '{name}' must have at least {LEAST} columns ({columns}), found {len(record)}"
                )
            token, user, uid, *groups = record
            if token:
                listed = tuple(groups[0].split(",")) if groups else ()
                users[_digest(token)] = authenticated(User(user, listed, uid))
    except csv.Error as error:
        raise ValueError(f"token file '{name}', line {reader.line_num}: {error}") from error
    return users


class TokenFile:
    """The authenticator that recognises them. It knows their digests only, so that how long it takes says
    nothing of them."""

    def __init__(self, users: Mapping[bytes, User]) -> None:
        self._users = users

    def authenticate(self, request: Request) -> User | None:
        token = bearer_token(request)
        return self._users.get(_digest(token)) if token else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()
