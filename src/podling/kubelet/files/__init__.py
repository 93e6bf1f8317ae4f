"""Walking, reading and removing files that pods may have written, without touching any other file."""
