"""R-SYS-8: what clients see of two podlings on an etcd of three members while members, servers and links fail
could have been so on one machine that never fails. `bench/faults.py` has as many runs as it is told.
"""

from __future__ import annotations

from pathlib import Path

from peer import faulty
from peer.history import faults
from peer.recorded import Run

RUNS = 5


async def test_no_write_is_lost_no_read_stale_no_watch_broken_and_no_two_lead(
    kubernetes_programs: Path, tmp_path: Path
) -> None:
    async with faulty.cluster(kubernetes_programs, tmp_path) as cluster:
        for number in range(RUNS):
            run = Run(cluster, number)
            history = await run.play()
            assert faults(history) == [], run.faults
            made = sum(write.outcome == "made" for write in history.writes)
            assert made and history.reads and history.watches and history.leaders
