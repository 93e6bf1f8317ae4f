"""Chooses a node for each pod: pure filters and scores, and the loop that binds."""
