"""Graph mode: operations recorded as nodes, and sessions that place and run them.

It sits on the same operation table, placement rules, pools and array functions as eager mode. Nothing here is
imported by the rooms below; they meet a default graph through ``devices.placement``.
"""
