"""Rules for names, labels and keys. Each check returns Kubernetes' messages; an empty list means valid.

The caller prefixes field and value: `metadata.name: Invalid value: "A": a lowercase RFC 1123 ...`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps

Check = Callable[[str], list[str]]

LONGEST_REMEMBERED = 512
"""Characters of the longest name whose result is cached."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORE_LABEL = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LABEL_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_EDGES = "must start and end with an alphanumeric character"
_LABEL_KEY_RULE = f"must consist of alphanumeric characters, '-', '_' or '.', and {_EDGES}"


EMPTY = "must be non-empty"


class _Rule:
    """A pattern with the sentence that explains it. `fullmatch` keeps `$` from allowing a final newline."""

    def __init__(self, sentence: str, pattern: str, *examples: str) -> None:
        listed = " or ".join(f"'{example}', " for example in examples)
        hint = f"e.g. {listed}" if examples else ""
        self.message = f"{sentence} ({hint}regex used for validation is '{pattern}')"
        self._pattern = re.compile(pattern)

    def allows(self, value: str) -> bool:
        return self._pattern.fullmatch(value) is not None

    def faults(self, value: str) -> list[str]:
        return [] if self.allows(value) else [self.message]


_DNS1123_LABEL = _Rule(
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_EDGES}",
    _LABEL,
    "my-name",
    "123-abc",
)
_DNS1123_SUBDOMAIN = _Rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    + _EDGES,
    _SUBDOMAIN,
    "example.com",
)
_DNS1123_SUBDOMAIN_UNDERSCORE = _Rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
    + _EDGES,
    rf"{_UNDERSCORE_LABEL}(\.{_UNDERSCORE_LABEL})*",
    "example.com",
)
_WILDCARD_SUBDOMAIN = _Rule(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    rf"\*\.{_SUBDOMAIN}",
    "*.example.com",
)
_DNS1035_LABEL = _Rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "abc-123",
)
_LABEL_NAME = _Rule(_LABEL_KEY_RULE, _LABEL_KEY, "MyName", "my.name", "123-abc")
_LABEL_VALUE = _Rule(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
    + _EDGES,
    f"({_LABEL_KEY})?",
    "MyValue",
    "my_value",
    "12345",
)
_CONFIG_KEY = _Rule(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)
_HTTP_HEADER = _Rule(
    "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
)


def _too_long(value: str, most: int, unit: str = "bytes") -> list[str]:
    return [f"must be no more than {most} {unit}"] if len(value.encode()) > most else []


def _remembered(check: Check) -> Check:
    """Cache the results of a check whose values are few and come again."""
    found = lru_cache(maxsize=1024)(check)

    @wraps(check)
    def remembered(value: str) -> list[str]:
        return list(found(value)) if len(value) <= LONGEST_REMEMBERED else check(value)

    return remembered


@_remembered
def dns1123_label(value: str) -> list[str]:
    """Names of containers, namespaces, volumes."""
    faults = _too_long(value, 63, "characters")
    if not _DNS1123_LABEL.allows(value):
        dotted = _DNS1123_SUBDOMAIN.allows(value)
        faults.append("must not contain dots" if dotted else _DNS1123_LABEL.message)
    return faults


def dns1123_subdomain(value: str) -> list[str]:
    """Names of pods and of most kinds."""
    return _too_long(value, 253, "characters") + _DNS1123_SUBDOMAIN.faults(value)


def long_name(value: str) -> list[str]:
    """As `dns1123_subdomain`, in the words of rules that are generated."""
    return _too_long(value, 253) + _DNS1123_SUBDOMAIN.faults(value)


def dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """DNS search domains of a pod."""
    return _too_long(value, 253, "characters") + _DNS1123_SUBDOMAIN_UNDERSCORE.faults(value)


def wildcard_subdomain(value: str) -> list[str]:
    """Hosts of an ingress that stand for many: `*.example.com`."""
    return _too_long(value, 253, "characters") + _WILDCARD_SUBDOMAIN.faults(value)


def dns1035_label(value: str) -> list[str]:
    """Versions of an API, and kinds in lower case."""
    return _too_long(value, 63, "characters") + _DNS1035_LABEL.faults(value)


@_remembered
def label_key(value: str) -> list[str]:
    """A qualified name: an optional DNS subdomain and `/`, then a name. Keys of labels and annotations."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_LABEL_NAME.message} {example}"]
    domain_faults = _too_long(prefix, 253) + _DNS1123_SUBDOMAIN.faults(prefix)
    prefix_faults = (domain_faults if prefix else [EMPTY]) if slash else []
    name_faults = _LABEL_NAME.faults(name)
    length_faults = _too_long(name, 63) if name else [EMPTY]
    return [f"prefix part {fault}" for fault in prefix_faults] + [
        f"name part {fault}" for fault in length_faults + name_faults
    ]


qualified_name = label_key


def label_value(value: str) -> list[str]:
    return _too_long(value, 63) + _LABEL_VALUE.faults(value)


def port_name(value: str) -> list[str]:
    """IANA service name: a port's name."""
    faults = _too_long(value, 15, "characters")
    if re.fullmatch("[-a-z0-9]+", value) is None:
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search("[a-z]", value) is None:
        faults.append("must contain at least one letter (a-z)")
    if "--" in value:
        faults.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        faults.append("must not begin or end with a hyphen")
    return faults


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def config_key(value: str) -> list[str]:
    """Keys of config maps and secrets: they become file names."""
    leads_out = ["must not start with '..'"] if value.startswith("..") else []
    if value in (".", ".."):
        leads_out = [f"must not be '{value}'"]
    return _too_long(value, 253, "characters") + _CONFIG_KEY.faults(value) + leads_out


def environment_name(value: str) -> list[str]:
    """Names of environment variables, as relaxed in v1.34: printable ASCII but for `=`."""
    if not value:
        return [f"environment variable name {EMPTY}"]
    if all(" " <= letter <= "~" and letter != "=" for letter in value):
        return []
    return [
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
    ]


def http_header(value: str) -> list[str]:
    return _HTTP_HEADER.faults(value)


def path_segment(value: str) -> list[str]:
    """Faults of a name as a segment of a URL path, which every name must be able to be."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return path_segment_prefix(value)


def path_segment_prefix(value: str) -> list[str]:
    """As `path_segment`, of what a name begins with."""
    if "/" not in value and "%" not in value:
        return []
    return [f"may not contain '{letter}'" for letter in "/%" if letter in value]
