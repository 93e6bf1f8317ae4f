"""The PodStatus from what was observed (pure), and its writer."""
