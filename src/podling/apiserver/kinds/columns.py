"""Columns and cells that many tables share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from operator import itemgetter

from podling.apiserver.kinds.kind import Column
from podling.model.time import human_duration, parse_time
from podling.model.types.meta import LabelSelector
from podling.model.types.networking import IngressLoadBalancerIngress
from podling.model.types.service import LoadBalancerIngress

NONE = "<none>"
UNSET = "<unset>"

NAME = Column("Name", "string", "name", "Unique within its namespace and kind; cannot be changed.")
AGE = Column("Age", description="Time since the object was created.")
UNPRINTED = (NAME, Column("Created At", "date", description="When the object was created."))
"""Those of the kinds that Kubernetes has no printer of their own for."""

UNKNOWN = "<unknown>"

EXPRESSIONS = {
    "In": "{key} in {values}",
    "NotIn": "{key} notin {values}",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


def or_none(text: str) -> str:
    return text or NONE


def joined(items: Iterable[str], separator: str = ",") -> str:
    return separator.join(items) or NONE


def labels_text(labels: dict[str, str]) -> str:
    """Labels as a selector: `a=b,c=d`."""
    return joined(f"{key}={value}" for key, value in sorted(labels.items()))


def addresses_text(ingresses: Iterable[LoadBalancerIngress | IngressLoadBalancerIngress]) -> str:
    """Where something is reached, each once, sorted."""
    return ",".join(sorted({ingress.ip or ingress.hostname for ingress in ingresses} - {""}))


def selector_text(selector: LabelSelector | None) -> str:
    """As `metav1.FormatLabelSelector` writes it: requirements by key, `a=b,c in (d,e),!f`."""
    if selector is None:
        return NONE
    said = [(key, f"{key}={value}") for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        values = f"({','.join(sorted(one.values))})"
        said.append((one.key, EXPRESSIONS[one.operator].format(key=one.key, values=values)))
    return joined(text for _, text in sorted(said, key=itemgetter(0)))


def age(since: str | None, now: datetime) -> str:
    """The age of an API timestamp; `<unknown>` if it is empty."""
    return human_duration((now - parse_time(since)).total_seconds()) if since else UNKNOWN
