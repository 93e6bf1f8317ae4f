"""Files of a place that pods write to, handled by root so that no other file is ever touched."""
