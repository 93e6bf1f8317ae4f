"""The command line: a file for each command, which reads arguments and prints."""
