"""What no two servers can have alike is put out of an answer: identities, versions, times, chosen names.

A value is not blotted out but named by the answer that first had it: the second uid that answer 3 is the
first to have is `<uid 3.2>` wherever it appears, in messages, too, so that it shows when one is changed that
should stay, and an answer that differs does not change the names in those after it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_YEAR = datetime.now(UTC).year
NOW = re.compile(rf"(?!2026-01-02T)(?:{_YEAR}|{_YEAR + 1})-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
"""All but the day that tests send."""
TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+")
SUFFIX = re.compile(r"(kube-api-access-|generated-)[a-z0-9]{5}\b")
RECORD = re.compile(
    r"(?<=ResourceVersion in record \()\d+|(?<=ResourceVersion in the precondition \()\d+"
    r"|(?<=ResourceVersion in precondition: )\d+|(?<=ResourceVersion in object meta: )\d+"
)
PATCHED = re.compile(r'((?:^|patch: )Invalid value: )"(?:\{.*\}|map\[.*\])"(?=: )', re.DOTALL)
"""The whole object, with what is named one by one elsewhere."""
TERMINATING = 'k:{"type":"Terminating"}'
BY = ("operation", "manager", "subresource", "apiVersion")
LISTED = frozenset({"items", "rows"})
ADDRESS = re.compile(r"10\.9[67]\.\d+\.\d+|fd00:96::[0-9a-f]+")
AGE = re.compile(r"\d+[sm]|\d+m\d+s")
SELF = re.compile(r"\bselfType\d+")
"""The type of a value that rules are about, which Kubernetes numbers by the time."""
CREDENTIAL = re.compile(r"X509SHA256=[0-9a-f]{64}")


class Masks:
    """Those of one server in one sequence."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {}
        self._answer, self._new = 0, Counter[str]()

    def answer(self, number: int, body: Any) -> Any:
        """The body of that answer, masked. They come in order."""
        self._answer, self._new = number, Counter()
        return self.masked(body)

    def masked(self, value: Any, name: str = "", within: str = "") -> Any:
        if isinstance(value, dict) and LISTED.intersection(value) and "metadata" in value:
            # That of the whole store, in which other objects are written meanwhile.
            value = {**value, "metadata": {**value["metadata"], "resourceVersion": "<of the list>"}}
        if name == TERMINATING:
            # Kubernetes writes the condition three times on the way, podling once.
            value = {key: inner for key, inner in value.items() if key != "f:lastTransitionTime"}
        if isinstance(value, dict):
            return {key: self.masked(inner, key, name) for key, inner in value.items()}
        if isinstance(value, list) and name == "causes":
            # Kubernetes checks the metadata of some kinds several times and lists each fault as often.
            value = list({json.dumps(cause): cause for cause in value}.values())
        if isinstance(value, list) and name == "managedFields":
            # Ordered by the second of the write, which one server may see end between two and the other not.
            value = sorted(value, key=lambda entry: [entry.get(part, "") for part in BY])
        if isinstance(value, list):
            return [self.masked(inner, name, within) for inner in value]
        if name == "resourceVersion" and value and value != "<of the list>":
            return self._numbered("version", str(value))
        if name in ("nodePort", "healthCheckNodePort") and value:
            return self._numbered("port", str(value))
        if name == "cells" and isinstance(value, str) and AGE.fullmatch(value):
            # Of an object that one server was asked to make just before a second ended, the other after.
            return "<age>"
        if name == "serverAddress" and value:
            return "<address>"
        if name == "continue" and value:
            return "<continue>"
        if name == "cells" and isinstance(value, str) and AGE.fullmatch(value):
            return "<age>"
        return self._text(value) if isinstance(value, str) else value

    def _text(self, value: str) -> str:
        value = PATCHED.sub(r"\1<the patched object>", value)
        value = UUID.sub(lambda found: self._numbered("uid", found[0]), value)
        value = SELF.sub("selfType", CREDENTIAL.sub("<credential>", value))
        value = NOW.sub(lambda found: "<time.fraction>" if found[1] else "<time>", value)
        value = RECORD.sub(lambda found: self._numbered("version", found[0]), value)
        value = SUFFIX.sub(lambda found: f"{found[1]}<suffix>", TOKEN.sub("<token>", value))
        return ADDRESS.sub(lambda found: self._numbered("address", found[0]), value)

    def _numbered(self, what: str, value: str) -> str:
        seen = self._seen.setdefault(what, {})
        if value not in seen:
            self._new[what] += 1
            seen[value] = f"<{what} {self._answer}.{self._new[what]}>"
        return seen[value]
