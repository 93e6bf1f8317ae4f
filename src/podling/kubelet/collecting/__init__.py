"""Getting rid of what nobody needs any more, before the disk is full of it."""
