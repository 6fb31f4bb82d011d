"""What the integrations share: their arguments, and what they install and undo."""
