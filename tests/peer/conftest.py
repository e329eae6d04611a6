"""In the place of the suite's own conftest.py, which first downloads nine models.

Servers end with their test. They listen at a port of this run: the suite's own is the same for all,
and another run on this machine, or any program, may have it.
"""
import os
import random
import socket

import pytest


def free_port() -> int:
    """A port below those that a system assigns, so no program gets it between two servers."""
    for port in random.SystemRandom().sample(range(20000, 32000), 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise SystemExit("no port is free")


os.environ["PORT"] = str(free_port())

from utils import server_instances  # noqa: E402 - it reads the port


@pytest.fixture(autouse=True)
def stop_server_after_each_test():
    yield
    for server in set(server_instances):
        server.stop()
