"""Hooks own the connections; operators stay thin."""
