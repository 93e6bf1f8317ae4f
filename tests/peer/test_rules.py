"""R-SYS-8: rules in the schemas of custom resources compile as by Kubernetes, and are found to cost as much;
so do selectors of devices.

What Kubernetes estimates is told only of what is too much. So each rule stands in a list of as many items as
make it a little too much by podling's own estimate: then both tell it to six digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from peer.named_differences import unnamed
from peer.sequence import Ask, Compared, differences, shown
from peer.server import Server
from peer.test_custom_resources import B, N, S, definition, listed, obj, of_rule, props, tried
from podling.apiserver.cel.checker import Expression
from podling.apiserver.cel.compilation import Compilation
from podling.apiserver.rules.custom_resources.expressions import RULE_LIMIT, verdicts
from podling.model.codec import json
from podling.model.types.apiextensions import JSONSchemaProps

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses?dryRun=All"
SELECTORS = Path(__file__).with_name("selectors.txt").read_text().splitlines()
RULES = Path(__file__).with_name("rules.txt").read_text().splitlines()
MESSAGES = Path(__file__).with_name("messages.txt").read_text().splitlines()
"""Rules about messages of protobuf, and formats that show what they cannot."""
WHOLE: dict[str, Any] = {"type": "integer"}
LEAST, MOST = RULE_LIMIT * 12 // 10, RULE_LIMIT * 14 // 10
"""What a rule costs that is told to six digits."""


def schema(length: int | None, count: int | None) -> dict[str, Any]:
    """Of an object with a field of each kind, as long as that; without a bound for None."""
    text = {**S, "maxLength": length} if length is not None else S

    def many(items: Any) -> dict[str, Any]:
        return listed(items, maxItems=count) if count is not None else listed(items)

    def mapped(values: Any) -> dict[str, Any]:
        bound = {"maxProperties": count} if count is not None else {}
        return obj(additionalProperties=values, **bound)

    keep = {"x-kubernetes-preserve-unknown-fields": True}
    named: dict[str, Any] = {
        **dict.fromkeys("xy", WHOLE),
        "s": text,
        "u": S,
        "f": N,
        "b": B,
        "o": obj(),
        "i": {"x-kubernetes-int-or-string": True},
        "t": {**S, "format": "date-time"},
        "d": {**S, "format": "date"},
        "du": {**S, "format": "duration"},
        "by": {**text, "format": "byte"},
        "en": {**S, "enum": ["abc", "éabcdefg"]},
        "l": many(text),
        "l1": many(S),
        "li": many(WHOLE),
        "lo": many(props(s=text, x=WHOLE)),
        "m": mapped(text),
        "mm": mapped(mapped(WHOLE)),
        "ll": many(many(WHOLE)),
        "ul": listed(S),
        "um": obj(additionalProperties=S),
        "uli": listed(WHOLE),
        "n": {**WHOLE, "nullable": True},
        "a-b": WHOLE,
        "for": WHOLE,
        "__x": WHOLE,
        "k": keep,
        "ko": obj(**keep),
        "e": obj(**{"x-kubernetes-embedded-resource": True}, **keep),
        "nmap": obj(additionalProperties=True),
    }
    return props(**named)


SCHEMAS: Mapping[str, dict[str, Any]] = {
    "bounded": schema(50, 7),
    "small": schema(1, 1),
    "large": schema(3_000, 300),
    "unbounded": schema(None, None),
    "of a text": S,
    "of a number": N,
    "of a truth": B,
    "of a list": listed({**S, "maxLength": 9}, maxItems=5),
    "of a map": {**obj(additionalProperties={**S, "maxLength": 9}), "maxProperties": 5},
    "of either": {"type": "", "x-kubernetes-int-or-string": True},
    "of a resource": obj(**{"x-kubernetes-embedded-resource": True}, properties={"s": S, "x": WHOLE}),
}


ALONE = re.compile(r"\bself\b(?!\.)")
"""What names the value itself."""


def told(of: dict[str, Any], rule: dict[str, Any]) -> Ask:
    """A definition with a rule of a schema, which costs a little too much."""
    (found,) = verdicts(json.from_data(props(a=of_rule(of, **rule)), JSONSchemaProps))
    count = 1 if found.cost * 2 > LEAST else min(RULE_LIMIT, math.ceil(LEAST / max(1, found.cost)))
    return tried(definition(properties={"a": listed(of_rule(of, **rule), maxItems=count)}))


def sequences() -> list[Compared]:
    made = [
        Compared(
            f"rules: {name}",
            [told(of, {"rule": text}) for text in RULES if of["type"] == "object" or ALONE.search(text)],
            apart=True,
        )
        for name, of in SCHEMAS.items()
    ]
    made.append(
        Compared(
            "rules: messages",
            [told(SCHEMAS["large"], {"rule": "true", "messageExpression": text}) for text in RULES[::5]],
            apart=True,
        )
    )
    made.append(
        Compared(
            "rules: messages of protobuf",
            [
                tried(definition(properties={"a": of_rule({**S, "maxLength": 5}, rule=text)}))
                for text in MESSAGES
            ],
            apart=True,
        )
    )
    made.append(
        Compared(
            "rules: what may be new",
            [
                tried(
                    definition(
                        properties={
                            "a": of_rule(SCHEMAS["bounded"], rule=f"oldSelf.{text}", optionalOldSelf=True)
                        }
                    )
                )
                for text in (
                    *("hasValue()", "x == 1", "value().x == 1", "orValue(self).nope == 1", "?x.hasValue()"),
                    *("?x == 1", "x.orValue(1) == 1", "optMap(o, o.x == self.x).orValue(true)", "nope"),
                    *("or(optional.of(self)).value() == self", "l[0].orValue('') == self.u", "all(x, true)"),
                )
            ],
        )
    )
    return made


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence.name)
def test_rules(sequence: Compared, kubernetes: Server, podling: Server) -> None:
    namespace = sequence.name.replace(": ", "-").replace(" ", "-")
    found = unnamed(differences(sequence, namespace, kubernetes, podling))
    assert not found, f"\n{shown(sequence, found)}"


def of_class(selector: str, times: int) -> Ask:
    """A class of devices, whose selector is as costly as so many of these."""
    many = f"lists.range({times}).all(number, {selector})"
    spec = {"selectors": [{"cel": {"expression": many}}]}
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "a"},
        "spec": spec,
    }
    return Ask("POST", CLASSES, body)


def most_times(selector: str) -> int:
    """As often as podling takes it."""
    taken, refused = 0, 200_000
    while refused - taken > 1:
        times = (taken + refused) // 2
        many = of_class(selector, times).body["spec"]["selectors"][0]["cel"]["expression"]
        if Compilation().fault(Expression(many, selects=True)):
            refused = times
        else:
            taken = times
    return taken


def test_selectors(kubernetes: Server, podling: Server) -> None:
    times = [(one, most_times(one)) for one in SELECTORS]
    asks = [of_class(one, most + more) for one, most in times for more in (0, 1)]
    sequence = Compared("rules: selectors", asks, apart=True)
    found = differences(sequence, "rules-selectors", kubernetes, podling)
    assert not found, f"\n{shown(sequence, found)}"
