"""The runtime in memory: a test double that ships with podling, so that tests of other projects can use
it.
"""
