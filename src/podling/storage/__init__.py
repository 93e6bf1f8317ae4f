"""Where objects are stored: the interface (`interface.py`), and SQLite and memory, which implement it."""
