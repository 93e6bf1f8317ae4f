"""Which node a pod runs on: pure filters and scores, and the loop that binds."""
