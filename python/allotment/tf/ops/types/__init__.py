"""Element types that operations take."""
