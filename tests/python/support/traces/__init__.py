"""Trace files for tests, and the slow model that replays are compared with."""
