"""The one place that has rules about devices: names, what exists, settings, limits, and the two states."""
