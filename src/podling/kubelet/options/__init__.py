"""What a user may set of a kubelet: a row for each option, and how its values are read and written."""
