"""How objects are shown: as a Table or as metadata alone."""
