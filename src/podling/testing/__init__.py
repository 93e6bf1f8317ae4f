"""The pytest plugin for tests against a real podling."""
