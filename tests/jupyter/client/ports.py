"""Import this in a client that starts kernels.

Jupyter chooses a kernel's ports among those that the system gives to any connection, so another program may have taken one before
the kernel opens it. With this, it chooses others.
"""

import os
import socket

from jupyter_client.connect import LocalPortCache

FIRST, COUNT = 22_000, 10_000  # below the ports that Linux gives to connections


def find_available_port(cache, ip):
    """Replaces LocalPortCache.find_available_port. Processes begin at different ports."""
    port = FIRST + os.getpid() * 10 % COUNT
    while True:
        if port not in cache.currently_used_ports:
            with socket.socket() as probe:
                try:
                    probe.bind((ip, port))
                    cache.currently_used_ports.add(port)
                    return port
                except OSError:
                    pass
        port = FIRST + (port + 1 - FIRST) % COUNT


LocalPortCache.find_available_port = find_available_port
