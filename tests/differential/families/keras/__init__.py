"""Recipes for Keras."""
