"""Variables, rules to aggregate their copies, and checkpoint values that wait for new variables."""
