"""What the volumes of a pod must be, source by source."""
