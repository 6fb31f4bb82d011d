"""Options of sessions and runs, as messages."""
