from __future__ import annotations

import pytest

from podling.apiserver.rules.container.container import STOP_SIGNALS
from podling.cri.grpc.containerd_tasks import signal_number

NUMBERS = [
    ("SIGTERM", 15),
    ("SIGUSR1", 10),
    ("SIGRTMIN", 34),
    ("SIGRTMIN+15", 49),
    ("SIGRTMAX-14", 50),
    ("SIGRTMAX", 64),
]


@pytest.mark.parametrize(("name", "number"), NUMBERS)
def test_numbers(name: str, number: int) -> None:
    assert signal_number(name) == number


def test_every_signal_the_api_takes_has_one() -> None:
    numbers = [signal_number(name) for name in STOP_SIGNALS["linux"]]
    # SIGIOT is SIGABRT, SIGCLD is SIGCHLD and SIGPOLL is SIGIO.
    assert len(set(numbers)) == len(numbers) - 3
