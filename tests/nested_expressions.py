"""Expressions of CEL that are nested as deep as Kubernetes takes them, and how deep that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podling.apiserver.cel.nesting import ENTERED, ON_THE_WAY

Made = Callable[[int], str]
DEEPEST: Mapping[str, tuple[Made, int, str]] = {
    "parentheses": (lambda n: "(" * n + "1" + ")" * n + "==1", 249, ENTERED),
    "lists": (lambda n: "[" * n + "1" + "]" * n + "!=dyn(1)", 249, ENTERED),
    "maps": (lambda n: "{1:" * n + "1" + "}" * n + "!=dyn(1)", 249, ENTERED),
    "calls": (lambda n: "dyn(" * n + "1" + ")" * n + "==1", 249, ENTERED),
    "macros": (lambda n: "[1].exists(x," * n + "true" + ")" * n, 249, ENTERED),
    "indices": (lambda n: "[0][" * n + "0" + "]" * n + "==0", 249, ENTERED),
    "signs": (lambda n: "-(" * n + "1" + ")" * n + "<2", 249, ENTERED),
    "conditions": (lambda n: "true?true:" * n + "true", 249, ENTERED),
    "conditions in parentheses": (lambda n: "(true?1:" * n + "1" + ")" * n + "==1", 124, ENTERED),
    "sums in parentheses": (lambda n: "(1+" * n + "1" + ")" * n + ">1", 124, ENTERED),
    "sums": (lambda n: "1+" * n + "1>1", 249, ON_THE_WAY),
    "sums of products": (lambda n: "1+2*" * n + "1>1", 248, ON_THE_WAY),
    "relations": (lambda n: "1<2" + "==true" * n, 249, ON_THE_WAY),
    "members": (lambda n: "'a'" + ".trim()" * n + "=='a'", 249, ON_THE_WAY),
    "fields that may be there": (lambda n: "optional.none()" + ".?a" * n + ".orValue(true)", 248, ON_THE_WAY),
}
"""How to make one, how deep it may be, and what is said of one that is deeper."""
ENDLESS = {
    "signs in a row": "!" * 4_000 + "true",
    "ands": "true&&" * 4_000 + "true",
    "ors": "false||" * 4_000 + "true",
}
"""What is no nesting."""
