"""One pod's worker: observes, asks the planner, applies what it says, reports."""
