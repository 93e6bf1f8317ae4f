"""Property: whoever watches a prefix hears of the writes under it alone, whoever came and went before."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from podling.storage.interface import Event, Watchers

KEYS = ["/a/b/c", "/a/b/d", "/a/bc/d", "/a/b", "/b", "c"]
PREFIXES = ["", "/", "/a/", "/a/b", "/a/b/", "/a/b/c", "/a/b/c/", "c", "x"]
ADD, END, WRITE = "add", "end", "write"
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just(ADD), st.sampled_from(PREFIXES)),
        st.tuples(st.just(END), st.integers(0, 5)),
        st.tuples(st.just(WRITE), st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)),
    ),
    max_size=30,
)


@given(STEPS)
def test_everybody_hears_of_what_is_under_their_prefix(steps: list[tuple[str, object]]) -> None:
    watchers = Watchers()
    watching: list[tuple[str, list[str], Callable[[], None]]] = []
    for revision, (step, what) in enumerate(steps):
        if step == ADD:
            assert isinstance(what, str)
            heard: list[str] = []

            def hear(_: int, events: list[Event], heard: list[str] = heard) -> None:
                heard += [event.key for event in events]

            watching.append((what, heard, watchers.add(what, hear)))  # type: ignore[arg-type]
        elif step == END and watching:
            assert isinstance(what, int)
            watching.pop(what % len(watching))[2]()
        elif step == WRITE:
            assert isinstance(what, list)
            before = [list(heard) for _, heard, _ in watching]
            watchers.publish(revision, [Event(revision, key, b"", None) for key in what])
            for (prefix, heard, _), already in zip(watching, before, strict=True):
                assert heard == already + [key for key in what if key.startswith(prefix)]
