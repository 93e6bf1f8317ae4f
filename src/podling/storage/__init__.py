"""Where objects live: one short promise (`interface.py`) and the back ends that keep it."""
