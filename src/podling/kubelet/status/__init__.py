"""From what was observed to the PodStatus (pure), and its writer."""
