"""The same things from a shell."""
