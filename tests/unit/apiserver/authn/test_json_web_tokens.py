"""Issue 13: whose JSON Web Token it is, by issuers that a configuration names. `tests/peer` compares a
hundred with Kubernetes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from podling.apiserver.authn.configuration import (
    ClaimMappings,
    ClaimOrExpression,
    ClaimValidationRule,
    ExtraMapping,
    Issuer,
    JWTAuthenticator,
    PrefixedClaimOrExpression,
    UserValidationRule,
)
from podling.apiserver.authn.json_web_tokens import JsonWebTokens, TokenIssuer
from podling.apiserver.authn.keys import MOST, REST, Keys
from podling.apiserver.request.request import User
from podling.model.errors import StatusError

NOW = 1_000_000_000
URL, DISCOVERY = "https://issuer.example", "https://issuer.example/.well-known/openid-configuration"
KEY, OTHER = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
PLAIN = JWTAuthenticator(
    issuer=Issuer(url=URL, audiences=["podling"]),
    claim_mappings=ClaimMappings(username=PrefixedClaimOrExpression(claim="sub", prefix="oidc:")),
)
CLAIMS = {"iss": URL, "aud": "podling", "sub": "ann", "exp": NOW + 60}


class Now:
    def now(self) -> datetime:
        return datetime.fromtimestamp(NOW, UTC)


class Published:
    """What an issuer shows, how often it was asked, and what time it is."""

    def __init__(self, **keys: ec.EllipticCurvePrivateKey) -> None:
        self.keys: Mapping[str, ec.EllipticCurvePrivateKey] = keys
        self.asked: list[str] = []
        self.seconds = 0.0
        self.issuer = URL

    async def fetch(self, url: str) -> bytes:
        self.asked.append(url)
        if url == DISCOVERY:
            return json.dumps({"issuer": self.issuer, "jwks_uri": f"{URL}/keys"}).encode()
        shown = [
            {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid}
            for kid, key in self.keys.items()
        ]
        return json.dumps({"keys": shown}).encode()

    def tokens(self, said: JWTAuthenticator = PLAIN) -> JsonWebTokens:
        keys = Keys(URL, "", self.fetch, lambda: self.seconds)
        return JsonWebTokens({URL: TokenIssuer(said, keys)}, Now())


def signed(
    claims: Mapping[str, Any] = CLAIMS, key: Any = KEY, alg: str = "ES256", kid: str = "a", **more: Any
) -> str:
    payload = json.dumps({**claims, **more}).encode()
    return jwt.api_jws.encode(payload, key, algorithm=alg, headers={"kid": kid})


async def whose(token: str, said: JWTAuthenticator = PLAIN) -> User | None:
    owner = await Published(a=KEY).tokens(said).owner_of(token, ["server"])
    return owner.user if owner else None


async def test_a_good_token() -> None:
    assert await whose(signed()) == User("oidc:ann", ("system:authenticated",))


@pytest.mark.parametrize(
    "token",
    [
        signed(exp=NOW - 1),
        signed(nbf=NOW + 90),
        signed(aud="other"),
        signed(aud=[]),
        signed(exp=None),
        signed(key=OTHER),
        signed(kid="b"),
        signed(key=b"s" * 32, alg="HS256"),
        jwt.encode(CLAIMS, "", algorithm="none"),
        signed()[:-8] + "AAAAAAAA",
        signed().rpartition(".")[0] + ".",
        signed(sub=1),
    ],
)
async def test_a_token_that_is_not_good(token: str) -> None:
    with pytest.raises(StatusError) as raised:
        await whose(token)
    assert raised.value.code == 401


@pytest.mark.parametrize(
    "token", ["", "a.b.c", ".".join("a" * 1000), signed(iss="https://other.example"), "\u00e4"]
)
async def test_a_token_of_nobody_here(token: str) -> None:
    published = Published(a=KEY)
    assert await published.tokens().owner_of(token, []) is None
    assert not published.asked


async def test_a_user_is_made_by_expressions() -> None:
    said = JWTAuthenticator(
        issuer=PLAIN.issuer,
        claim_mappings=ClaimMappings(
            username=PrefixedClaimOrExpression(expression="claims.sub + '@' + claims.tenant"),
            groups=PrefixedClaimOrExpression(expression="claims.roles.map(r, 'role:' + r)"),
            uid=ClaimOrExpression(expression="string(claims.number)"),
            extra=[ExtraMapping(key="a.example/tenant", value_expression="claims.tenant")],
        ),
        claim_validation_rules=[ClaimValidationRule(expression="claims.tenant in ['acme']")],
        user_validation_rules=[UserValidationRule(expression="!('role:root' in user.groups)")],
    )
    extra = (("a.example/tenant", ("acme",)),)
    token = signed(tenant="acme", roles=["dev"], number=7)
    user = User("ann@acme", ("role:dev", "system:authenticated"), "7", extra)
    assert await whose(token, said) == user
    for wrong in ({"tenant": "other"}, {"roles": ["root"]}, {"roles": [1]}, {"tenant": 1}):
        with pytest.raises(StatusError):
            await whose(signed({**CLAIMS, "tenant": "acme", "roles": ["dev"], "number": 7, **wrong}), said)


async def test_keys_are_fetched_again_for_a_new_one_and_not_at_a_strangers_pace() -> None:
    published = Published(a=KEY)
    tokens = published.tokens()
    for _ in range(100):
        with pytest.raises(StatusError):
            await tokens.owner_of(signed(kid="b", key=OTHER), [])
    assert published.asked == [DISCOVERY, f"{URL}/keys"]
    published.keys = {"b": OTHER}
    published.seconds += REST
    assert await tokens.owner_of(signed(kid="b", key=OTHER), [])
    assert published.asked[2:] == [f"{URL}/keys"]
    with pytest.raises(StatusError):
        await tokens.owner_of(signed(), [])


async def test_an_issuer_has_so_many_keys() -> None:
    published = Published(**{f"k{number}": OTHER for number in range(MOST)}, last=KEY)
    with pytest.raises(StatusError):
        await published.tokens().owner_of(signed(kid="last"), [])


async def test_an_issuer_that_calls_itself_otherwise_has_no_keys() -> None:
    published = Published(a=KEY)
    published.issuer = "https://other.example"
    with pytest.raises(StatusError):
        await published.tokens().owner_of(signed(), [])
