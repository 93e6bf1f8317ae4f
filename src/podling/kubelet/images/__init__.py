"""Images on the node: pulled, kept and collected."""
