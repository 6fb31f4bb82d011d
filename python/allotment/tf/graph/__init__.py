"""Graph mode: operations recorded as nodes, and sessions that place and run them.

It uses the operation table, placement rules, pools, kernels and executor of eager mode. The rooms below import nothing
of this one; they reach a thread's default graph through the thread's state. The folders are layers, the lowest first:
``nodes`` (data), ``recording``, ``variables``; ``options``; ``running``. ``graph``, ``default`` and ``session``
stand on them.
"""
