"""Control flow as functions, and assertions."""
