"""The planner, pure: from the pod, what was observed and the time, to the next actions."""
