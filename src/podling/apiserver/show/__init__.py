"""Representations of objects in answers: Table, and metadata alone."""
