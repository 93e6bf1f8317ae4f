"""Histories of clients while members of etcd, servers and links fail, judged by `tests/peer/history.py`.

`python bench/faults.py [RUNS [FIRST [SECONDS]]]` prints a line for each run, begins none after so many
SECONDS, and says at the end how much was done and what was found. `PODLING_UPSTREAM` makes etcd.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from time import monotonic

# It needs what tests need.
from upstream import unpacked

RUNS, LONGEST = 200, 3600


async def main(runs: int, first: int, seconds: int) -> int:
    from peer import faulty
    from peer.history import faults
    from peer.recorded import Run

    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        programs = unpacked(directory / "programs")
        begun = monotonic()
        async with faulty.cluster(programs, directory) as cluster:
            for number in range(first, first + runs):
                if monotonic() - begun > seconds:
                    break
                run = Run(cluster, number)
                try:
                    history = await run.play()
                except (Exception, BaseExceptionGroup) as error:
                    # Somebody did not recover in time.
                    counts["not finished"] += 1
                    print(number, *run.faults, repr(error), sep="; ", flush=True)
                    traceback.print_exception(error)
                    break
                found = faults(history)
                counts["runs"] += 1
                counts["found"] += bool(found)
                counts.update(f"writes {write.outcome}" for write in history.writes)
                counts["reads"] += len(history.reads)
                counts["events watched"] += sum(len(watch.told) for watch in history.watches)
                counts["terms of leaders"] += len(history.leaders)
                counts.update(f"fault {fault}" for fault in run.faults)
                print(number, *run.faults, *(found or ["nothing found"]), sep="; ", flush=True)
        took = monotonic() - begun
    print(f"{took:.0f} s;", ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return 1 if counts["found"] or counts["not finished"] else 0


if __name__ == "__main__":
    given = [int(one) for one in sys.argv[1:]]
    sys.exit(asyncio.run(main(*given, *(RUNS, 0, LONGEST)[len(given) :])))
