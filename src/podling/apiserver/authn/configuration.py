"""AuthenticationConfiguration (apiserver.config.k8s.io): the issuers of JSON Web Tokens that are believed,
how their claims become a user, and on which paths strangers are let in. `rules/authentication.py` checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from podling.apiserver.request.request import LONGEST_OF_A_STRANGER, decoded
from podling.model.codec.fields import Object, Part

GROUP = "apiserver.config.k8s.io"
VERSIONS = tuple(f"{GROUP}/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
CLAIMS, USER = "claims", "user"
"""What expressions may name."""


class Issuer(Part):
    url: str = ""
    discovery_URL: str = ""
    certificate_authority: str = ""
    audiences: list[str] = []
    audience_match_policy: str = ""
    egress_selector_type: str = ""


class ClaimValidationRule(Part):
    claim: str = ""
    required_value: str = ""
    expression: str = ""
    message: str = ""


class PrefixedClaimOrExpression(Part):
    claim: str = ""
    prefix: str | None = None
    expression: str = ""


class ClaimOrExpression(Part):
    claim: str = ""
    expression: str = ""


class ExtraMapping(Part):
    key: str = ""
    value_expression: str = ""


class ClaimMappings(Part):
    username: PrefixedClaimOrExpression = msgspec.field(default_factory=PrefixedClaimOrExpression)
    groups: PrefixedClaimOrExpression = msgspec.field(default_factory=PrefixedClaimOrExpression)
    uid: ClaimOrExpression = msgspec.field(default_factory=ClaimOrExpression)
    extra: list[ExtraMapping] = []


class UserValidationRule(Part):
    expression: str = ""
    message: str = ""


class JWTAuthenticator(Part):
    issuer: Issuer = msgspec.field(default_factory=Issuer)
    claim_validation_rules: list[ClaimValidationRule] = []
    claim_mappings: ClaimMappings = msgspec.field(default_factory=ClaimMappings)
    user_validation_rules: list[UserValidationRule] = []


class AnonymousCondition(Part):
    path: str = ""


class AnonymousAuth(Part):
    enabled: bool = False
    conditions: list[AnonymousCondition] = []


class AuthenticationConfiguration(Object):
    KIND: ClassVar[str] = "AuthenticationConfiguration"
    API_VERSION: ClassVar[str] = VERSIONS[0]

    jwt: list[JWTAuthenticator] = []
    anonymous: AnonymousAuth | None = None


def one_issuer(
    url: str,
    audience: str,
    authority: str,
    username: str,
    username_prefix: str,
    groups: str,
    groups_prefix: str,
    required: Sequence[tuple[str, str]],
) -> AuthenticationConfiguration:
    """What the flags `--oidc-…` say. Without a prefix, names that are no addresses get the issuer's."""
    if not username_prefix and username != "email":
        username_prefix = f"{url}#"
    prefix = "" if username_prefix == "-" else username_prefix
    mappings = ClaimMappings(username=PrefixedClaimOrExpression(claim=username, prefix=prefix))
    if groups:
        mappings.groups = PrefixedClaimOrExpression(claim=groups, prefix=groups_prefix)
    issuer = Issuer(url=url, audiences=[audience], certificate_authority=authority)
    rules = [ClaimValidationRule(claim=claim, required_value=value) for claim, value in required]
    said = JWTAuthenticator(issuer=issuer, claim_mappings=mappings, claim_validation_rules=rules)
    return AuthenticationConfiguration(jwt=[said])


class Doors:
    """Where strangers are let in. `paths`: there alone; `is_open` counts if nothing is said of it."""

    def __init__(self, chosen: bool | None) -> None:
        self._chosen = chosen
        self._is_open = chosen is not False
        self._paths: frozenset[str] = frozenset()

    def are_open(self, path: str) -> bool:
        if not self._is_open or not self._paths:
            return self._is_open
        return decoded(path[:LONGEST_OF_A_STRANGER]).decode(errors="replace") in self._paths

    def put(self, configuration: AuthenticationConfiguration) -> None:
        """Raises ValueError if the flag says something of it, too."""
        said = configuration.anonymous
        if said is not None and self._chosen is not None:
            flag = "--anonymous-auth flag cannot be set"
            why = "when anonymous field is configured in authentication configuration file"
            raise ValueError(f"anonymous: Forbidden: {flag} {why}")
        self._is_open = said.enabled if said else self._chosen is not False
        self._paths = frozenset(condition.path for condition in said.conditions) if said else frozenset()
