"""Thin adapters to other libraries, each imported by name and by nobody inside."""
