"""The runtime in memory: a test double that is shipped, so that tests of others can use it."""
