"""The rules `pod_plan.py` puts together, one file a rule. Pure."""
