"""Integrations that make other libraries take their memory from pools: one module for each library.

Importing ``allotment`` imports none of them.
"""
