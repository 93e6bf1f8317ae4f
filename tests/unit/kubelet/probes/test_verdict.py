"""Thresholds: outcomes in, health out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podling.kubelet.probes.prober import FIRST, Health, ProbeKind, Verdict, judge, probe_result
from podling.model.types.container import Container, Probe

STARTUP, LIVENESS, READINESS = ProbeKind.STARTUP, ProbeKind.LIVENESS, ProbeKind.READINESS

# fmt: off
COURSES = [
    # kind      successes, failures needed   outcomes      health after each (P passed, F failed, . unknown)
    (STARTUP,   1, 3,                        "---",        "..F"),
    (STARTUP,   1, 3,                        "--+",        "..P"),
    (STARTUP,   1, 1,                        "-",          "F"),
    (LIVENESS,  1, 3,                        "--+--",      "PPPPP"),
    (LIVENESS,  1, 3,                        "+---",       "PPPF"),
    (READINESS, 1, 3,                        "+--+---+",   "PPPPPPFP"),
    (READINESS, 3, 1,                        "++-+++-",    "FFFFFPF"),
]
# fmt: on


@pytest.mark.parametrize(("kind", "successes", "failures", "outcomes", "healths"), COURSES)
def test_health_follows_runs_of_outcomes(
    kind: ProbeKind, successes: int, failures: int, outcomes: str, healths: str
) -> None:
    probe = Probe(success_threshold=successes, failure_threshold=failures)
    verdict = Verdict(FIRST[kind])
    seen = ""
    for outcome in outcomes:
        verdict = judge(verdict, outcome == "+", probe)
        seen += {Health.PASSED: "P", Health.FAILED: "F", Health.UNKNOWN: "."}[verdict.health]
    assert seen == healths


@given(st.lists(st.booleans(), min_size=1), st.integers(1, 4), st.integers(1, 4))
def test_health_changes_only_after_a_full_run(outcomes: list[bool], successes: int, failures: int) -> None:
    probe = Probe(success_threshold=successes, failure_threshold=failures)
    verdict = Verdict(Health.UNKNOWN)
    for index, outcome in enumerate(outcomes):
        before, verdict = verdict, judge(verdict, outcome, probe)
        if verdict.health is not before.health:
            run = outcomes[: index + 1][-(successes if outcome else failures) :]
            assert set(run) == {outcome}
            assert len(run) == (successes if outcome else failures)


# fmt: off
RESULTS = [
    # startup         liveness         readiness        started  ready  alive  failed
    (Health.UNKNOWN,  Health.PASSED,   Health.FAILED,   False,   False, True,  ""),
    (Health.UNKNOWN,  Health.PASSED,   Health.PASSED,   False,   False, True,  ""),
    (Health.PASSED,   Health.PASSED,   Health.FAILED,   True,    False, True,  ""),
    (Health.PASSED,   Health.PASSED,   Health.PASSED,   True,    True,  True,  ""),
    (Health.PASSED,   Health.FAILED,   Health.PASSED,   True,    True,  False, "liveness"),
    (Health.FAILED,   Health.PASSED,   Health.FAILED,   False,   False, False, "startup"),
    (None,            Health.FAILED,   None,            True,    True,  False, "liveness"),
    (Health.PASSED,   None,            None,            True,    True,  True,  ""),
]
# fmt: on


@pytest.mark.parametrize(("startup", "liveness", "readiness", "started", "ready", "alive", "failed"), RESULTS)
def test_results_of_all_probes(
    startup: Health | None,
    liveness: Health | None,
    readiness: Health | None,
    started: bool,
    ready: bool,
    alive: bool,
    failed: str,
) -> None:
    given_healths = {STARTUP: startup, LIVENESS: liveness, READINESS: readiness}
    container = Container(
        name="c",
        startup_probe=Probe(),
        liveness_probe=Probe(termination_grace_period_seconds=7),
        readiness_probe=Probe(),
    )
    result = probe_result(container, {k: h for k, h in given_healths.items() if h is not None})
    assert (result.started, result.ready, result.alive) == (started, ready, alive)
    assert result.message == (f"failed {failed} probe" if failed else "")
    assert result.grace_seconds == (7 if failed == "liveness" else None)
