"""Parts of messages: who called, what to pass instead, which name to write."""
