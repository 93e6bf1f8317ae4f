"""The promise of storage kept by SQLite: an append-only log of revisions with one writer thread."""
