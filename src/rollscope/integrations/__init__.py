"""Ways into other frameworks: their tracers' names with our recorder, callbacks, wrapped clients.

None of them imports its framework before it is used.
"""
