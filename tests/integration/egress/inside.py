"""Becomes a client in a network namespace of its own, after handing out the listening sockets.

Arguments: FD LISTENERS RESOLV_CONF COMMAND... ; FD is a Unix socket to the proxy's process,
LISTENERS a JSON list of [kind, address, port]. This is what a sandbox backend does for a command.
"""

import json
import os
import socket
import subprocess
import sys

from tests.integration.egress.namespaces import enter_new


def main() -> None:
    fd, listeners, resolv_conf, *command = sys.argv[1:]
    enter_new()
    sockets = []
    for kind, address, port in json.loads(listeners):
        sock = socket.socket(socket.AF_INET, kind)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        if kind == socket.SOCK_STREAM:
            sock.listen(128)
        sockets.append(sock)
    with socket.socket(fileno=int(fd)) as channel:
        socket.send_fds(channel, [b"x"], [sock.fileno() for sock in sockets])
        channel.recv(1)
    for sock in sockets:
        sock.close()
    subprocess.run(["mount", "--bind", resolv_conf, "/etc/resolv.conf"], check=True)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
