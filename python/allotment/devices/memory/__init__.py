"""Memory of logical devices in use: figures, scopes, changes of limits and growth."""
