"""The worker of a pod: observes the runtime, asks the planner, applies the actions, reports."""
