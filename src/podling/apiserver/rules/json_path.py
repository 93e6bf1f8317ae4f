"""Whether a text is a JSONPath of the kind that kubectl takes, and what its parser says if not."""

from __future__ import annotations

import re

_ENDS = frozenset("\t\r\n .,[]$@{}")
"""What a name ends before."""
_NUMBER = re.compile(r"[+-]?[\d.]*")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)")
_KEY = re.compile("'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARED = re.compile(r"([^!<>=]+)[!<>=]+(.+)")
_ESCAPES = r"\\(?:[abfnrtv\\%s]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|[0-3][0-7]{2})"
_QUOTED = {quote: re.compile(rf"(?:[^\\{quote}]|{_ESCAPES % quote})*") for quote in "'\""}
LARGEST = (1 << 63) - 1


class _PathError(ValueError):
    pass


def fault_of_json_path(path: str) -> str:
    """In the words of Kubernetes' parser; empty for one that it takes."""
    try:
        _check(path)
    except _PathError as error:
        return str(error)
    return ""


def _check(path: str) -> None:
    """Raises _PathError. What follows a brace that closes is text, up to one that opens."""
    text, at = f"{{{path}}}", 0
    while (opened := text.find("{", at)) >= 0:
        at = _Action(text, opened + 1).end()


class _Action:
    """What stands between two braces."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at
        self._is_recursive = False
        """What was last read is a recursive descent."""

    def end(self) -> int:
        """Where it is over. Raises _PathError."""
        while not self._text.startswith("}", self._at):
            self.part()
        return self._at + 1

    def part(self) -> None:
        text, at = self._text, self._at
        if text.startswith("..", at):
            if self._is_recursive:
                raise _PathError("invalid multiple recursive descent")
            self._is_recursive, self._at = True, at + 2
            if text[at + 2 : at + 3].isalnum() or text.startswith("_", at + 2):
                self.field()
            return
        sign = text[at : at + 1]
        if sign in ("", "\r", "\n"):
            raise _PathError("unclosed action")
        if sign in (" ", "@", "$"):
            self._at += 1
            return
        self._is_recursive = False
        if text.startswith("[?(", at):
            self.filter()
        elif sign == "[":
            self.array()
        elif sign in _QUOTED:
            self.quoted(sign)
        elif sign == ".":
            self._at += 1
            self.field()
        elif sign in "+-" or sign.isdecimal():
            found = _NUMBER.match(text, at)
            assert found
            if not _FLOAT.fullmatch(found[0]):
                raise _PathError(f"cannot parse number {found[0]}")
            self._at = found.end()
        elif sign.isalnum() or sign == "_":
            while text[self._at] not in _ENDS:
                self._at += 1
        else:
            shown = f" '{sign}'" if sign.isprintable() else ""
            raise _PathError(f"unrecognized character in action: U+{ord(sign):04X}{shown}")

    def field(self) -> None:
        """A backslash takes the next sign as it is."""
        self._is_recursive = False
        while self._at < len(self._text) and self._text[self._at] not in _ENDS:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at = min(self._at, len(self._text))

    def quoted(self, quote: str) -> None:
        begun, at = self._at, self._at
        while True:
            at += 1
            sign = self._text[at : at + 1]
            if sign in ("", "\n"):
                raise _PathError("unterminated quoted string")
            if sign == quote and self._text[at - 1] != "\\":
                break
        self._at = at + 1
        if not _QUOTED[quote].fullmatch(self._text, begun + 1, at):
            raise _PathError(f"unquote string {self._text[begun : self._at]} error invalid syntax")

    def array(self) -> None:
        closed = self._text.find("]", self._at)
        if closed < 0 or self._text.find("\n", self._at, closed) >= 0:
            raise _PathError("unterminated array")
        within, self._at = self._text[self._at + 1 : closed], closed + 1
        if "," in within:
            for one in within.split(","):
                _check(f"[{one.strip(' ')}]")
        elif key := _KEY.fullmatch(within):
            _check(f".{key[1]}")
        elif within != "*":
            found = _SLICE.fullmatch(within)
            if found is None:
                raise _PathError(f"invalid array index {within}")
            for index in (part.removeprefix(":") for part in found.groups() if part):
                if index == "-" or (index and not -LARGEST <= int(index) <= LARGEST):
                    raise _PathError(f"array index {index} is not a number")

    def filter(self) -> None:
        begun = at = self._at + len("[?(")
        quote, is_over = "", False
        while True:
            sign = self._text[at : at + 1]
            at += 1
            if sign in ("", "\n"):
                raise _PathError("unterminated filter")
            if sign in _QUOTED:
                if not quote:
                    quote = sign
                elif sign == quote and self._text[at - 2] != "\\":
                    is_over = True
            elif sign == ")" and bool(quote) == is_over:
                break
        if not self._text.startswith("]", at):
            raise _PathError("unclosed array expect ]")
        within, self._at = self._text[begun : at - 1], at + 1
        compared = _COMPARED.fullmatch(within)
        for side in compared.groups() if compared else (within,):
            _check(side)
