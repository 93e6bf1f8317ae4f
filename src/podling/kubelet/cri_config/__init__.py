"""From a pod to the CRI's messages: sandbox, containers, environment, security."""
