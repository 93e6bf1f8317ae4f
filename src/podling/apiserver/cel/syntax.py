"""What `cel-go` says of an expression that is none: ANTLR's runtime reads it with CEL's grammar
(`grammar.py`), goes on after a fault as ANTLR does, and has its words.

It is asked once an expression is known to be none, and imported then.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import Any

from antlr4.atn.ATNState import ATNState, BlockEndState, LoopEndState, StarLoopEntryState
from antlr4.atn.ParserATNSimulator import ParserATNSimulator
from antlr4.atn.Transition import Transition
from antlr4.CommonTokenFactory import CommonTokenFactory
from antlr4.CommonTokenStream import CommonTokenStream
from antlr4.error.Errors import InputMismatchException, NoViableAltException, RecognitionException
from antlr4.error.ErrorStrategy import DefaultErrorStrategy
from antlr4.IntervalSet import IntervalSet
from antlr4.Parser import Parser
from antlr4.ParserRuleContext import InterpreterRuleContext
from antlr4.Token import CommonToken, Token

from podling.apiserver.cel.grammar import NAMED, NUMBERS, RULES, SIGNS, automaton
from podling.apiserver.cel.nesting import ENTERED, MOST
from podling.apiserver.cel.tokens import tokens
from podling.apiserver.cel.words import MOST_TOLD, SYNTAX, Fault, at_offset

RECOVERIES, SKIPPED = 30, 256
"""How often it goes on after a fault, and how many tokens it leaves out for one."""
_RESERVED = re.compile(r"no viable alternative at input '.(true|false|null)'")
_BLOCKS = (
    *(ATNState.BLOCK_START, ATNState.STAR_BLOCK_START, ATNState.PLUS_BLOCK_START),
    ATNState.STAR_LOOP_ENTRY,
)
_FIELD, _NAME, _EXPR = map(list(RULES).index, ("field", "name", "expr"))
_PAIRS = tuple(map(list(RULES).index, ("fields", "entries")))
_LOOPS = (ATNState.PLUS_LOOP_BACK, ATNState.STAR_LOOP_BACK)


_reading = Lock()


class _Ended(Exception):
    """No more is read."""


def syntax_faults(text: str, others: Sequence[Fault] = ()) -> list[Fault]:
    """`others`: what else is told, unless the reading is given up."""
    found: list[Fault] = []

    def tell(offset: int, message: str) -> None:
        message = _RESERVED.sub(r"mismatched input '\1' expecting IDENTIFIER", message)
        found.append(at_offset(offset, SYNTAX + message, text))
        if len(found) > MOST_TOLD:
            raise _Ended

    parser = _Parser(CommonTokenStream(_Tokens(text, tell)), tell)
    try:
        with _reading:
            parser.parse()
    except _Ended as error:
        return [*found, *(Fault(-1, -1, why) for why in error.args)]
    found += [at_offset(*one, text) for one in parser.names]
    return [*found, *(fault for fault in others if not fault.message.startswith(SYNTAX))]


class _Tokens:
    """Made as they are asked for: what comes after the end of reading is not told of."""

    line = column = 0

    def __init__(self, text: str, tell: Any) -> None:
        self._text, self._tell = text, tell
        self._tokens = tokens(text)
        self._factory = CommonTokenFactory.DEFAULT

    def nextToken(self) -> CommonToken:
        for sort, text, start, end in self._tokens:
            if sort:
                return self._token(NUMBERS[text if sort == "SIGN" else sort], text, start, end)
            self._tell(start, f"token recognition error at: '{text}'")
        size = len(self._text)
        return self._token(Token.EOF, "<EOF>", size, size)

    def _token(self, type_: int, text: str, start: int, end: int) -> CommonToken:
        is_between = type_ in (NUMBERS["WHITESPACE"], NUMBERS["COMMENT"])
        channel = Token.HIDDEN_CHANNEL if is_between else Token.DEFAULT_CHANNEL
        made = CommonToken((self, None), type_, channel, start, end - 1)
        made.text = text
        return made


class _Strategy(DefaultErrorStrategy):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self._attempts = 0

    def sync(self, recognizer: Any) -> None:
        if self.inErrorRecoveryMode(recognizer):
            return
        at = recognizer.atn.states[recognizer.state]
        possible = recognizer.atn.nextTokens(at)
        if Token.EPSILON in possible or recognizer.getTokenStream().LA(1) in possible:
            return
        if at.stateType in _BLOCKS:
            if self.singleTokenDeletion(recognizer) is None:
                raise InputMismatchException(recognizer)
        elif at.stateType in _LOOPS:
            self.reportUnwantedToken(recognizer)
            until = IntervalSet()
            until.addSet(recognizer.getExpectedTokens())
            until.addSet(self.getErrorRecoverySet(recognizer))
            self.consumeUntil(recognizer, until)

    def recover(self, recognizer: Any, e: Any) -> None:
        self._begin(recognizer)
        super().recover(recognizer, e)
        recognizer.may_skip = None

    def recoverInline(self, recognizer: Any) -> Any:
        self._begin(recognizer)
        try:
            return super().recoverInline(recognizer)
        finally:
            recognizer.may_skip = None

    def _begin(self, recognizer: Any) -> None:
        if self._attempts == RECOVERIES:
            recognizer.notifyErrorListeners(f"error recovery attempt limit exceeded: {RECOVERIES}")
            raise _Ended
        self._attempts += 1
        recognizer.may_skip = SKIPPED


class _Parser(Parser):  # type: ignore[misc]
    _ctx: Any
    state: Any
    literalNames = ["<INVALID>", *(f"'{sign}'" for sign in SIGNS)]
    symbolicNames = ["<INVALID>"] * len(literalNames) + list(NAMED)

    def __init__(self, stream: Any, tell: Any) -> None:
        super().__init__(stream)
        self._tell = tell
        self.atn, self._first_tokens, choices, contexts = automaton()
        self._interp = ParserATNSimulator(self, self.atn, choices, contexts)
        self._errHandler = _Strategy()
        self.buildParseTrees = False
        self.may_skip: int | None = None
        """How many tokens may be left out still."""
        self._called: list[tuple[Any, int]] = []
        """From where the rules were called that call themselves."""
        self._entered: Counter[int] = Counter()
        self.names: list[tuple[int, str]] = []
        """What is wrong with those of fields, and where."""

    def notifyErrorListeners(self, msg: str, offendingToken: Any = None, e: Any = None) -> None:
        self._tell((offendingToken or self.getCurrentToken()).start, msg)

    def consume(self) -> Any:
        if self.may_skip is not None:
            if not self.may_skip:
                raise _Ended(f"error recovery token lookahead limit exceeded: {SKIPPED}")
            self.may_skip -= 1
        return super().consume()

    def parse(self) -> None:
        self._enter(self.atn.ruleToStartState[0], -1, 0)
        while self._ctx is not None:
            at = self.atn.states[self.state]
            try:
                if at.stateType == ATNState.RULE_STOP:
                    self._leave(at)
                else:
                    self._step(at)
            except RecognitionException as error:
                self._ctx.exception = error
                self._errHandler.reportError(self, error)
                self._errHandler.recover(self, error)
                self.state = self.atn.ruleToStopState[at.ruleIndex].stateNumber

    def _enter(self, start: Any, caller: int, precedence: int) -> None:
        rule, around = start.ruleIndex, self._ctx
        if around is not None and around.ruleIndex in _PAIRS:
            around.before = None if rule == _EXPR else len(self.names)
        context = InterpreterRuleContext(around, caller, rule)
        if start.isPrecedenceRule:
            self._called.append((self._ctx, caller))
            self.enterRecursionRule(context, start.stateNumber, rule, precedence)
        else:
            self.enterRule(context, start.stateNumber, rule)
        self._entered[rule] += 1
        if self._entered[rule] > MOST:
            raise _Ended(ENTERED)

    def _leave(self, stop: Any) -> None:
        self._entered[stop.ruleIndex] -= 1
        context = self._ctx
        if stop.ruleIndex == _FIELD:
            whole = context.parentCtx if context.parentCtx.ruleIndex == _NAME else context
            if context.exception:
                self.names.append((whole.start.start, "unsupported ident kind"))
            elif context.start.type == NUMBERS["ESC_IDENTIFIER"]:
                self.names.append((whole.start.start, "unsupported syntax: '`'"))
        elif stop.ruleIndex in _PAIRS and context.before is not None:
            del self.names[context.before :]
        if self.atn.ruleToStartState[stop.ruleIndex].isPrecedenceRule:
            context, caller = self._called.pop()
            self.unrollRecursionContexts(context)
            self._ctx = context
            self.state = caller
        else:
            self.exitRule()
        if self._ctx is not None:
            self.state = self.atn.states[self.state].transitions[0].followState.stateNumber

    def _step(self, at: Any) -> None:
        if at.stateType in _BLOCKS or at.stateType in _LOOPS:
            self._errHandler.sync(self)
        if at.stateType == ATNState.STAR_LOOP_BACK:
            at = at.transitions[0].target
        way = at.transitions[0]
        if len(at.transitions) > 1:
            chosen = self._chosen(at)
            way = at.transitions[chosen - 1]
            if isinstance(at, StarLoopEntryState) and at.isPrecedenceDecision and chosen == 1:
                parent, caller = self._called[-1]
                start = self.atn.ruleToStartState[at.ruleIndex]
                again = InterpreterRuleContext(parent, caller, at.ruleIndex)
                self.pushNewRecursionContext(again, start.stateNumber, at.ruleIndex)
        kind = way.serializationType
        if kind == Transition.RULE:
            self._enter(way.target, at.stateNumber, way.precedence)
            return
        if kind == Transition.ATOM:
            self.match(way.label_)
        elif kind == Transition.SET:
            self.consume()
            self._errHandler.reportMatch(self)
        self.state = way.target.stateNumber

    def _chosen(self, at: Any) -> int:
        """Where the next token tells the ways apart, nothing else is asked, as in the code that ANTLR makes:
        what is no way at all ends a loop."""
        if not (ways := self._first_tokens[at.decision]):
            chosen: int = self._interp.adaptivePredict(self._input, at.decision, self._ctx)
            return chosen
        token = self._input.LA(1)
        for chosen, way in enumerate(ways, 1):
            if token in way:
                return chosen
        if isinstance(at.transitions[-1].target, BlockEndState | LoopEndState):
            return len(ways)
        raise NoViableAltException(self)
