"""JSON Web Tokens of issuers that a configuration names: verified, judged, and made a user of.

A token is looked at only if it names one of these issuers. What it says counts once its signature is
verified; only asymmetric algorithms are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from jwt import PyJWS
from jwt.exceptions import PyJWTError

from podling.apiserver.authn.authenticators import Owner, authenticated
from podling.apiserver.authn.configuration import (
    ClaimOrExpression,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
)
from podling.apiserver.authn.keys import Keys
from podling.apiserver.authn.tokens import decoded_part, issuer_of
from podling.apiserver.cel.evaluation import Cut, program
from podling.apiserver.request.request import User
from podling.model.errors import unauthorized
from podling.model.time import Clock

ALGORITHMS = tuple(f"{kind}{bits}" for kind in ("RS", "ES", "PS") for bits in (256, 384, 512))
LEEWAY = 60.0
"""Seconds that a token may be used early."""
_jws = PyJWS(algorithms=list(ALGORITHMS))


class InvalidTokenError(Exception):
    """A token that is of one of the issuers, and not good."""


class _Header(msgspec.Struct):
    alg: str
    kid: str = ""
    crit: Any = None


class _Standard(msgspec.Struct):
    """The claims that every token is judged by. Times are seconds since 1970."""

    aud: str | list[str] | None = None
    exp: float | str | None = None
    nbf: float | str | None = None
    iat: float | str | None = None
    sub: str | None = None


_header = msgspec.json.Decoder(_Header)
_standard = msgspec.json.Decoder(_Standard)
_claims = msgspec.json.Decoder(dict[str, Any])


class TokenIssuer(msgspec.Struct, frozen=True):
    """One issuer, as it was configured. `algorithms`: those that count."""

    said: JWTAuthenticator
    keys: Keys
    algorithms: Sequence[str] = ALGORITHMS


class JsonWebTokens:
    """The authenticator that recognises them. `issuers` are by their URLs, and may be exchanged."""

    def __init__(self, issuers: Mapping[str, TokenIssuer], clock: Clock) -> None:
        self.issuers = issuers
        self._clock = clock

    async def owner_of(self, token: str, audiences: Collection[str]) -> Owner | None:
        """Raises StatusError 401 for a token of a known issuer that is not good."""
        issuer = self.issuers.get(issuer_of(token))
        if issuer is None:
            return None
        try:
            payload = await _verified(token, issuer)
            now = self._clock.now().timestamp()
            try:
                user = user_of(payload, issuer.said, now, quick=True)
            except Cut:
                user = await asyncio.to_thread(user_of, payload, issuer.said, now, quick=False)
        except InvalidTokenError as error:
            raise unauthorized() from error
        return Owner(authenticated(user), tuple(audiences))


async def _verified(token: str, issuer: TokenIssuer) -> bytes:
    """The payload. Raises InvalidTokenError."""
    try:
        header = _header.decode(decoded_part(token.partition(".")[0]))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidTokenError(f"the header is malformed: {error}") from error
    if header.alg not in issuer.algorithms or header.crit is not None:
        raise InvalidTokenError(f"the algorithm {header.alg!r} does not count")
    for key in await issuer.keys.of(header.kid, header.alg):
        try:
            payload: bytes = _jws.decode(token, key, algorithms=[header.alg])
        except (PyJWTError, ValueError):
            continue
        return payload
    raise InvalidTokenError("no key of the issuer has signed it")


def user_of(payload: bytes, said: JWTAuthenticator, now: float, *, quick: bool) -> User:
    """The user that verified claims make, at `now` (seconds since 1970). Raises InvalidTokenError; Cut, if
    `quick` and the expressions take long."""
    try:
        standard, claims = _standard.decode(payload), _claims.decode(payload)
        expiry, begin, _ = map(_moment, (standard.exp, standard.nbf, standard.iat))
        # All numbers are doubles to expressions, as in Go.
        names = {"claims": json.loads(payload, parse_int=float)} if _has_expressions(said) else {}
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidTokenError(f"the claims are malformed: {error}") from error
    aud = [standard.aud] if isinstance(standard.aud, str) else standard.aud or []
    if not set(aud) & set(said.issuer.audiences):
        raise InvalidTokenError("it is for other audiences")
    if expiry is None or now > expiry:
        raise InvalidTokenError("it is expired")
    if begin is not None and now + LEEWAY < begin:
        raise InvalidTokenError("it is not good yet")

    def evaluated(expression: str) -> Any:
        return _value(expression, names, quick=quick)

    mappings = said.claim_mappings
    username = _username(mappings.username, claims, evaluated)
    groups = _groups(mappings.groups, claims, evaluated)
    uid = _uid(mappings.uid, claims, evaluated)
    extra = tuple(
        (entry.key, values)
        for entry in mappings.extra
        if (values := _texts(evaluated(entry.value_expression), entry.key))
    )
    for rule in said.claim_validation_rules:
        if rule.claim:
            if _text(claims, rule.claim) != rule.required_value:
                raise InvalidTokenError(f"the claim {rule.claim} is not {rule.required_value!r}")
        elif evaluated(rule.expression) is not True:
            raise InvalidTokenError(rule.message or rule.expression)
    user = User(username, groups, uid, extra)
    shown = {
        "username": username,
        "uid": uid,
        "groups": list(groups),
        "extra": {key: list(values) for key, values in extra},
    }
    for judged in said.user_validation_rules:
        if _value(judged.expression, {"user": shown}, quick=quick) is not True:
            raise InvalidTokenError(judged.message or judged.expression)
    return user


def _has_expressions(said: JWTAuthenticator) -> bool:
    mappings = said.claim_mappings
    return bool(
        mappings.extra
        or any(one.expression for one in (mappings.username, mappings.groups, mappings.uid))
        or any(rule.expression for rule in said.claim_validation_rules)
    )


def _moment(said: float | str | None) -> float | None:
    """Numbers may be in quotes. Raises ValueError."""
    return None if said is None else float(said)


def _text(claims: Mapping[str, Any], name: str) -> Any:
    """A claim that should be text; that is empty if it is null, as in Go."""
    said = claims.get(name)
    return "" if said is None and name in claims else said


def _value(expression: str, names: Mapping[str, Any], *, quick: bool) -> Any:
    """Raises InvalidTokenError, Cut."""
    result = program(expression).evaluated(names, quick=quick)
    if result.error:
        raise InvalidTokenError(f"{expression}: {result.error}")
    return result.value


Evaluate = Callable[[str], Any]


def _username(said: PrefixedClaimOrExpression, claims: Mapping[str, Any], evaluated: Evaluate) -> str:
    name = evaluated(said.expression) if said.expression else _text(claims, said.claim)
    if not isinstance(name, str) or (said.expression and not name):
        raise InvalidTokenError("it has no user name")
    if said.claim == "email" and claims.get("email_verified", True) is not True:
        raise InvalidTokenError("its address is not verified")
    return (said.prefix or "") + name if said.claim else name


def _groups(
    said: PrefixedClaimOrExpression, claims: Mapping[str, Any], evaluated: Evaluate
) -> tuple[str, ...]:
    if said.expression:
        return _texts(evaluated(said.expression), "groups")
    groups = claims.get(said.claim) if said.claim else None
    listed = [groups] if isinstance(groups, str) else groups or []
    if not isinstance(listed, list) or not all(isinstance(group, str) for group in listed):
        raise InvalidTokenError("its groups are no list of strings")
    return tuple(f"{said.prefix or ''}{group}" for group in listed)


def _uid(said: ClaimOrExpression, claims: Mapping[str, Any], evaluated: Evaluate) -> str:
    if not said.claim and not said.expression:
        return ""
    uid = evaluated(said.expression) if said.expression else _text(claims, said.claim)
    if not isinstance(uid, str):
        raise InvalidTokenError("it has no uid")
    return uid


def _texts(value: Any, what: str) -> tuple[str, ...]:
    """What an expression makes of claims: a string, a list of strings, or nothing."""
    listed = [value] if isinstance(value, str) else value or []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise InvalidTokenError(f"{what} is neither a string nor a list of strings")
    return tuple(one for one in listed if one)
