"""The approval inbox: one page on the loopback interface that shows what waits for a human.

Rendered by the server, without any script. Whoever has the address that the command prints may decide.
"""
