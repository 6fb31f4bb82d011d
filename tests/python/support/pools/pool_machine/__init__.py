"""Parts of a Hypothesis state machine that runs random programs on a pool: each module adds rules of one kind."""
