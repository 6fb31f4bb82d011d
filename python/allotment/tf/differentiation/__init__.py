"""Gradient tapes and custom gradients."""
