"""CEL's grammar as the automaton with which ANTLR's runtime parses (`syntax.py`).

What is said of an expression that is none follows from how the rules are written: which alternatives they
have, in which order, and where there is a choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from antlr4.atn import ATNState as state
from antlr4.atn.ATN import ATN
from antlr4.atn.ATNType import ATNType
from antlr4.atn.Transition import (
    AtomTransition,
    EpsilonTransition,
    PrecedencePredicateTransition,
    RuleTransition,
    SetTransition,
)
from antlr4.dfa.DFA import DFA
from antlr4.IntervalSet import IntervalSet
from antlr4.LL1Analyzer import LL1Analyzer
from antlr4.PredictionContext import PredictionContext, PredictionContextCache
from antlr4.Token import Token

SIGNS = (
    *("==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!"),
    *("?", ":", "+", "*", "/", "%", "true", "false", "null"),
)
NAMED = (
    *("WHITESPACE", "COMMENT", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES"),
    *("IDENTIFIER", "ESC_IDENTIFIER"),
)
NUMBERS = {name: number for number, name in enumerate((*SIGNS, *NAMED), 1)} | {"EOF": Token.EOF}
"""Of the tokens: in this order they are said to be expected."""
RULES = {
    "start": "expr EOF",
    "expr": "or ('?' or ':' expr)?",
    "or": "and ('||' and)*",
    "and": "relation ('&&' relation)*",
    "relation": "calc | relation ('<' | '<=' | '>=' | '>' | '==' | '!=' | 'in') relation",
    "calc": "unary | calc ('*' | '/' | '%') calc | calc ('+' | '-') calc",
    "unary": "member | '!'+ member | '-'+ member",
    "member": "primary | member '.' '?'? field | member '.' IDENTIFIER '(' arguments? ')'"
    " | member '[' '?'? expr ']'",
    "primary": "'.'? IDENTIFIER | '.'? IDENTIFIER '(' arguments? ')' | '(' expr ')' | '[' items? ','? ']'"
    " | '{' entries? ','? '}' | '.'? IDENTIFIER ('.' IDENTIFIER)* '{' fields? ','? '}' | literal",
    "arguments": "expr (',' expr)*",
    "items": "item (',' item)*",
    "fields": "name ':' expr (',' name ':' expr)*",
    "name": "'?'? field",
    "entries": "item ':' expr (',' item ':' expr)*",
    "field": "IDENTIFIER | ESC_IDENTIFIER",
    "item": "'?'? expr",
    "literal": "'-'? NUM_INT | NUM_UINT | '-'? NUM_FLOAT | STRING | BYTES | 'true' | 'false' | 'null'",
}
_PART = re.compile(r"'[^']+'|\w+|[()|?*+]")


class Span(NamedTuple):
    """States between which something is read. `last`: what leads to the right one, if nothing else does."""

    left: Any
    right: Any
    last: Any = None

    def lead(self, to: Any) -> None:
        """Alternatives that end with the same end in the same state: so they are told apart no further."""
        if self.last is None:
            _then(self.right, to)
        elif isinstance(self.last, RuleTransition):
            self.last.followState = to
        else:
            self.last.target = to


class Automaton(NamedTuple):
    """`first_tokens`: of the ways of each decision, if no two have one in common and none depends on what is
    around; else none. `choices` and `contexts` are what was found out about decisions, kept for all: some 160
    states after thousands of expressions."""

    atn: Any
    first_tokens: Sequence[Sequence[Any]]
    choices: Sequence[Any]
    contexts: Any


@cache
def automaton() -> Automaton:
    atn = _Making().made()
    decisions = []
    for decision in atn.decisionToState:
        ways = []
        for way in decision.transitions:
            ways.append(IntervalSet())
            LL1Analyzer(atn)._LOOK(
                way.target, None, PredictionContext.EMPTY, ways[-1], set(), set(), False, False
            )
        is_plain = all(way.intervals and LL1Analyzer.HIT_PRED not in way for way in ways)
        is_told = is_plain and sum(map(len, ways)) == len(set().union(*ways))
        decisions.append(ways if is_told else [])
    choices = [DFA(one, number) for number, one in enumerate(atn.decisionToState)]
    return Automaton(atn, decisions, choices, PredictionContextCache())


class _Making:
    def __init__(self) -> None:
        self._atn = ATN(ATNType.PARSER, len(NUMBERS))
        self._rule = 0
        self._numbers = {name: number for number, name in enumerate(RULES)}
        self._atn.ruleToStopState = []
        for self._rule in range(len(RULES)):
            start, stop = self._new(state.RuleStartState), self._new(state.RuleStopState)
            start.stopState = stop
            self._atn.ruleToStartState.append(start)
            self._atn.ruleToStopState.append(stop)

    def made(self) -> Any:
        for self._rule, (name, text) in enumerate(RULES.items()):
            start = self._atn.ruleToStartState[self._rule]
            ways = list(_ways(_PART.findall(text)))
            own = [way for way in ways if way[0] == name]
            if own:
                start.isPrecedenceRule = True
                body = self._recursive(name, ways)
            else:
                body = self._block(state.BasicBlockStartState, [self._sequence(way) for way in ways])
            _then(start, body.left)
            _then(body.right, start.stopState)
        for one in self._atn.states:
            for call in one.transitions:
                if isinstance(call, RuleTransition):
                    is_outermost = call.target.isPrecedenceRule and not call.precedence
                    back = EpsilonTransition(call.followState, call.ruleIndex if is_outermost else -1)
                    call.target.stopState.addTransition(back)
        return self._atn

    def _recursive(self, name: str, ways: Sequence[Sequence[str]]) -> Span:
        """What begins with itself is read as a loop. The earlier of the ways binds tighter."""
        first = self._block(
            state.BasicBlockStartState, [self._sequence(way) for way in ways if way[0] != name]
        )
        again = []
        for tightness, way in zip(range(len(ways), 0, -1), ways, strict=True):
            if way[0] == name:
                left, right = self._new(state.BasicState), self._new(state.BasicState)
                left.addTransition(PrecedencePredicateTransition(right, tightness))
                rest = self._sequence(way[1:], tightness + 1)
                _then(right, rest.left)
                again.append(rest._replace(left=left))
        loop = self._repeated(again)
        loop.left.isPrecedenceDecision = True
        _then(first.right, loop.left)
        return Span(first.left, loop.right)

    def _new(self, kind: Any) -> Any:
        made = kind()
        made.ruleIndex = self._rule
        self._atn.addState(made)
        return made

    def _sequence(self, parts: Sequence[str], tightness: int = 0) -> Span:
        """`tightness`: of what the same rule reads in it."""
        spans, at = [], 0
        while at < len(parts):
            end = _end(parts, at)
            ways = list(_ways(parts[at + 1 : end - 1])) if parts[at] == "(" else [parts[at:end]]
            how = parts[end] if end < len(parts) and parts[end] in "?*+" else ""
            spans.append(self._element(ways, how, tightness))
            at = end + len(how)
        for before, after in pairwise(spans):
            _then(before.right, after.left)
        return spans[-1]._replace(left=spans[0].left)

    def _element(self, ways: Sequence[Sequence[str]], how: str, tightness: int) -> Span:
        """`how`: `?`, `*`, `+` or nothing: a rule, or one of some tokens."""
        if not how:
            left, right = self._new(state.BasicState), self._new(state.BasicState)
            parts = [part for (part,) in ways]
            rule = self._numbers.get(parts[0])
            if rule is not None:
                start = self._atn.ruleToStartState[rule]
                last = RuleTransition(start, rule, tightness if rule == self._rule else 0, right)
            elif len(parts) == 1:
                last = AtomTransition(right, NUMBERS[parts[0].strip("'")])
            else:
                choice = IntervalSet()
                for part in parts:
                    choice.addOne(NUMBERS[part.strip("'")])
                last = SetTransition(right, choice)
            left.addTransition(last)
            return Span(left, right, last)
        spans = [self._sequence(way) for way in ways]
        if how == "*":
            return self._repeated(spans)
        kind = state.BasicBlockStartState if how == "?" else state.PlusBlockStartState
        block = self._block(kind, spans, always=True)
        if how == "?":
            _then(block.left, block.right)
            return block
        back, end = self._new(state.PlusLoopbackState), self._new(state.LoopEndState)
        block.left.loopBackState = end.loopBackState = back
        self._atn.defineDecisionState(back)
        _then(block.right, back)
        _then(back, block.left)
        _then(back, end)
        return Span(block.left, end)

    def _block(self, kind: Any, spans: Sequence[Span], *, always: bool = False) -> Span:
        """`always`: also of one."""
        if len(spans) == 1 and not always:
            return spans[0]
        start, end = self._new(kind), self._new(state.BlockEndState)
        start.endState, end.startState = end, start
        self._atn.defineDecisionState(start)
        for span in spans:
            _then(start, span.left)
            span.lead(end)
        return Span(start, end)

    def _repeated(self, spans: Sequence[Span]) -> Span:
        entry = self._new(state.StarLoopEntryState)
        block = self._block(state.StarBlockStartState, spans, always=True)
        back, end = self._new(state.StarLoopbackState), self._new(state.LoopEndState)
        entry.loopBackState = end.loopBackState = back
        self._atn.defineDecisionState(entry)
        _then(entry, block.left)
        _then(entry, end)
        _then(block.right, back)
        _then(back, entry)
        return Span(entry, end)


def _then(before: Any, after: Any) -> None:
    before.addTransition(EpsilonTransition(after))


def _end(parts: Sequence[str], at: int) -> int:
    """Where the element ends that begins there."""
    depth = 0
    while True:
        depth += (parts[at] == "(") - (parts[at] == ")")
        at += 1
        if not depth:
            return at


def _ways(parts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The alternatives."""
    at = first = 0
    while at < len(parts):
        if parts[at] == "|":
            yield parts[first:at]
            first = at + 1
        at = _end(parts, at)
    yield parts[first:]
