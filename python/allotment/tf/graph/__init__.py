"""Graph mode: operations recorded as nodes, and sessions that place and run them.

It uses the operation table, placement rules, pools, kernels and executor of eager mode. The rooms below import nothing
of this one; they meet a graph through the state of the thread whose default it is. The folders are floors, the lowest
first: ``nodes`` (data), ``recording``, ``variables``; ``options``; ``running``. ``graph``, ``default`` and ``session``
stand on them.
"""
