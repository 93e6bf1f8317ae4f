"""The promise of storage kept by SQLite: an append-only log of revisions with one writer thread.

`log.py` is the table, `worker.py` the only thread that touches it, `store.py` what runs on the event loop;
`file.py` opens what `whole.py` finds undamaged:

    write ─▶ waiting ─▶ one group at a time ─▶ worker: one INSERT, one fsync ─▶ watchers, then the answers

Values also stay in memory (the same bytes the watch cache holds, so they cost their space once): a read never
waits for the disk, and a write is judged without asking SQLite.
"""

from podling.storage.sqlite.store import SqliteStorage, open
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

__all__ = ["DamagedFileError", "DataFileError", "SqliteStorage", "open"]
