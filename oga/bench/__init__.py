"""The load generator of ``oga bench``: the same requests for an engine in this process and for any server.

::

    workload (how long, how often) -> generator (closed or open loop) -> target (engine or URL) -> samples -> summary
"""
