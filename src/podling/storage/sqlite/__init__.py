"""Storage in SQLite: an append-only log of revisions with one writer thread.

`log.py` opens the data file and has the table, `worker.py` is the only thread that uses it, `store.py` runs
on the event loop, and `whole.py` checks that a data file is undamaged before it is used:

    write ─▶ waiting ─▶ one group at a time ─▶ worker: one INSERT, one fsync ─▶ watchers, then the answers

Values also stay in memory (the same bytes objects that the watch cache holds, so they cost their space once):
a read never waits for the disk, and a write is checked for conflicts without a query.
"""

from podling.storage.sqlite.store import SqliteStorage, open
from podling.storage.sqlite.whole import DamagedFileError, DataFileError

__all__ = ["DamagedFileError", "DataFileError", "SqliteStorage", "open"]
