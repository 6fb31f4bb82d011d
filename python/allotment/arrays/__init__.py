"""Array libraries behind one protocol: what a device's values are arrays of, and how they get there and back."""
