"""The volumes of a pod: set up before its containers start, kept up to date, and torn down."""
