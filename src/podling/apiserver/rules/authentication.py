"""What is wrong with an AuthenticationConfiguration, in Kubernetes' words. It is read and checked once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator

from cryptography import x509

from podling.apiserver.authn.configuration import (
    CLAIMS,
    USER,
    VERSIONS,
    AuthenticationConfiguration,
    Issuer,
    JWTAuthenticator,
)
from podling.apiserver.cel.checker import Expression, faults
from podling.apiserver.cel.urls import parsed_url
from podling.apiserver.rules import field
from podling.apiserver.rules.configuration_file import ConfigurationError, all_faults, read_file
from podling.model import names
from podling.model.errors import Cause

MATCH_ANY = "MatchAny"
MOST_ISSUERS = 64
BOTH = "claim and expression can't both be set"
EITHER = "claim or expression is required"
NO_PREFIX = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
ANOTHER = "may not be specified when {} is set"
_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_RESERVED = re.compile(r"(.*\.)?(k8s|kubernetes)\.io")
_EMAIL = re.compile(r"\bclaims\s*\.\s*\??\s*email\b")
_VERIFIED = re.compile(r"\bclaims\s*\.\s*\??\s*email_verified\b")


def read_configuration(data: bytes, own_issuers: Collection[str]) -> AuthenticationConfiguration:
    """A configuration from JSON; none of its issuers may be one of `own_issuers`. To be called in a thread,
    for its expressions are compiled. Raises ConfigurationError."""
    kinds = [(AuthenticationConfiguration.KIND, version) for version in VERSIONS]
    configuration = read_file(data, AuthenticationConfiguration, kinds)
    check(configuration, own_issuers)
    return configuration


def check(configuration: AuthenticationConfiguration, own_issuers: Collection[str]) -> None:
    """To be called in a thread, too. Raises ConfigurationError."""
    if told := all_faults(validate(configuration, own_issuers)):
        raise ConfigurationError(f"invalid authentication configuration: {told}")


def validate(configuration: AuthenticationConfiguration, own_issuers: Collection[str]) -> Iterator[Cause]:
    jwt = configuration.jwt
    if len(jwt) > MOST_ISSUERS:
        yield field.too_many("jwt", len(jwt), MOST_ISSUERS)
        return
    issuers, discoveries = set[str](), set[str]()
    for index, one in enumerate(jwt):
        path = f"jwt[{index}]"
        yield from _issuer_faults(one.issuer, f"{path}.issuer", own_issuers, issuers, discoveries)
        yield from _rule_faults(one, path)
    anonymous = configuration.anonymous
    if anonymous and anonymous.conditions and not anonymous.enabled:
        shown = [{"Path": condition.path} for condition in anonymous.conditions]
        why = "enabled should be set to true when conditions are defined"
        yield field.invalid("anonymous.conditions", shown, why)


def _issuer_faults(
    issuer: Issuer, path: str, own: Collection[str], issuers: set[str], discoveries: set[str]
) -> Iterator[Cause]:
    if not issuer.url:
        yield field.required(f"{path}.url")
    else:
        if issuer.url in issuers:
            yield field.duplicate(f"{path}.url", issuer.url)
        if issuer.url in own:
            why = f"URL must not overlap with disallowed issuers: [{' '.join(sorted(own))}]"
            yield field.invalid(f"{path}.url", issuer.url, why)
        yield from _url_faults(issuer.url, f"{path}.url")
    issuers.add(issuer.url)
    if discovery := issuer.discovery_URL:
        if issuer.url and issuer.url.rstrip("/") == discovery.rstrip("/"):
            why = "discoveryURL must be different from URL"
            yield field.invalid(f"{path}.discoveryURL", discovery, why)
        if discovery in discoveries:
            yield field.duplicate(f"{path}.discoveryURL", discovery)
        yield from _url_faults(discovery, f"{path}.discoveryURL")
        discoveries.add(discovery)
    yield from _audience_faults(issuer, path)
    if issuer.certificate_authority and (why := authority_fault(issuer.certificate_authority)):
        yield field.invalid(f"{path}.certificateAuthority", "<omitted>", why)
    if egress := issuer.egress_selector_type:
        if egress not in ("controlplane", "cluster"):
            why = "egress selector must be either controlplane or cluster"
        else:
            why = "podling has no egress selectors"
        yield field.invalid(f"{path}.egressSelectorType", egress, why)


def _url_faults(text: str, path: str) -> Iterator[Cause]:
    try:
        url = parsed_url(text)
    except ValueError as error:
        yield field.invalid(path, text, str(error))
        return
    for is_wrong, why in (
        (url.scheme != "https", "URL scheme must be https"),
        (url.user is not None, "URL must not contain a username or password"),
        (url.query, "URL must not contain a query"),
        (url.fragment, "URL must not contain a fragment"),
    ):
        if is_wrong:
            yield field.invalid(path, text, why)


def _audience_faults(issuer: Issuer, path: str) -> Iterator[Cause]:
    audiences, policy = issuer.audiences, issuer.audience_match_policy
    if not audiences:
        why = f"at least one {path}.audiences is required"
        yield field.required(f"{path}.audiences", why)
        return
    seen = set[str]()
    for index, audience in enumerate(audiences):
        if not audience:
            yield field.required(f"{path}.audiences[{index}]")
        elif audience in seen:
            yield field.duplicate(f"{path}.audiences[{index}]", audience)
        seen.add(audience)
    where = f"{path}.audienceMatchPolicy"
    if len(audiences) > 1 and policy != MATCH_ANY:
        why = "audienceMatchPolicy must be MatchAny for multiple audiences"
        yield field.invalid(where, policy, why)
    if len(audiences) == 1 and policy not in ("", MATCH_ANY):
        why = "audienceMatchPolicy must be empty or MatchAny for single audience"
        yield field.invalid(where, policy, why)


def authority_fault(pem: str) -> str:
    """What is wrong with certificates, empty for nothing."""
    if "-----BEGIN CERTIFICATE-----" not in pem:
        return "data does not contain any valid RSA or ECDSA certificates"
    try:
        x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        return "x509: malformed certificate"
    return ""


def _rule_faults(one: JWTAuthenticator, path: str) -> Iterator[Cause]:
    """What is wrong with rules and mappings, in Kubernetes' order; all expressions are compiled at once."""
    expressions = dict(_expressions(one, path))
    broken = faults(expressions)

    def compiled(where: str) -> Iterator[Cause]:
        if fault := broken.get(where):
            why = "must evaluate to bool" if fault.startswith("must evaluate to") else fault
            yield field.invalid(where, expressions[where].text, why)

    seen_claims, seen = set[str](), set[str]()
    for index, rule in enumerate(one.claim_validation_rules):
        where = f"{path}.claimValidationRules[{index}]"
        if rule.claim and rule.expression:
            yield field.invalid(where, rule.claim, BOTH)
        elif not rule.claim and not rule.expression:
            yield field.required(where, EITHER)
        elif rule.claim:
            if rule.message:
                yield field.invalid(f"{where}.message", rule.message, ANOTHER.format("claim"))
            if rule.claim in seen_claims:
                yield field.duplicate(f"{where}.claim", rule.claim)
            seen_claims.add(rule.claim)
        else:
            if rule.required_value:
                yield field.invalid(
                    f"{where}.requiredValue", rule.required_value, ANOTHER.format("expression")
                )
            if rule.expression in seen:
                yield field.duplicate(f"{where}.expression", rule.expression)
                continue
            seen.add(rule.expression)
            yield from compiled(f"{where}.expression")
    yield from _mapping_faults(one, f"{path}.claimMappings", compiled)
    seen.clear()
    for index, judged in enumerate(one.user_validation_rules):
        where = f"{path}.userValidationRules[{index}].expression"
        if not judged.expression:
            yield field.required(where)
        elif judged.expression in seen:
            yield field.duplicate(where, judged.expression)
        else:
            seen.add(judged.expression)
            yield from compiled(where)


def _mapping_faults(
    one: JWTAuthenticator, path: str, compiled: Callable[[str], Iterator[Cause]]
) -> Iterator[Cause]:
    mappings = one.claim_mappings
    if not mappings.username.claim and not mappings.username.expression:
        yield field.required(f"{path}.username", EITHER)
    for name, said in (("username", mappings.username), ("groups", mappings.groups)):
        where = f"{path}.{name}"
        if said.claim and said.expression:
            yield field.invalid(where, "", BOTH)
        elif said.claim and said.prefix is None:
            yield field.required(f"{where}.prefix", NO_PREFIX)
        elif said.expression:
            if said.prefix is not None:
                yield field.invalid(f"{where}.prefix", said.prefix, ANOTHER.format("expression"))
            yield from compiled(f"{where}.expression")
    if mappings.uid.claim and mappings.uid.expression:
        yield field.invalid(f"{path}.uid", "", BOTH)
    elif mappings.uid.expression:
        yield from compiled(f"{path}.uid.expression")
    seen = set[str]()
    for index, entry in enumerate(mappings.extra):
        where = f"{path}.extra[{index}]"
        yield from _key_faults(entry.key, f"{where}.key", seen)
        seen.add(entry.key)
        if not entry.value_expression:
            yield field.required(f"{where}.valueExpression")
        else:
            yield from compiled(f"{where}.valueExpression")
    username = mappings.username.expression
    judging = [
        username,
        *(entry.value_expression for entry in mappings.extra),
        *(rule.expression for rule in one.claim_validation_rules),
    ]
    if _EMAIL.search(username) and not any(map(_VERIFIED.search, judging)):
        where = "claimMappings.username.expression"
        others = "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression"
        why = (
            f"claims.email_verified must be used in {where} or {others} when claims.email is used in {where}"
        )
        yield field.invalid(f"{path}.username.expression", username, why)


def _key_faults(key: str, path: str, seen: Collection[str]) -> Iterator[Cause]:
    if not key:
        yield field.required(path)
        return
    domain, _, rest = key.partition("/")
    if not domain or not rest:
        yield field.invalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from field.all_invalid(path, domain, names.dns1123_subdomain(domain))
        if not _PATH.fullmatch(rest):
            yield field.invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH.pattern}')")
        if _RESERVED.fullmatch(domain):
            why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
            yield field.invalid(path, key, why)
    if key in seen:
        yield field.duplicate(path, key)
    if key != key.lower():
        yield field.invalid(path, key, "must be lowercase")


def _expressions(one: JWTAuthenticator, path: str) -> Iterator[tuple[str, Expression]]:
    """Every expression by its path."""
    mappings = one.claim_mappings
    for name, said in (("username", mappings.username), ("groups", mappings.groups), ("uid", mappings.uid)):
        yield f"{path}.claimMappings.{name}.expression", _about(CLAIMS, said.expression)
    for index, entry in enumerate(mappings.extra):
        where = f"{path}.claimMappings.extra[{index}].valueExpression"
        yield where, _about(CLAIMS, entry.value_expression)
    for index, rule in enumerate(one.claim_validation_rules):
        where = f"{path}.claimValidationRules[{index}].expression"
        yield where, _about(CLAIMS, rule.expression, "bool")
    for index, judged in enumerate(one.user_validation_rules):
        where = f"{path}.userValidationRules[{index}].expression"
        yield where, _about(USER, judged.expression, "bool")


def _about(what: str, text: str, *returns: str) -> Expression:
    return Expression(text or "true", returns, about=what)
