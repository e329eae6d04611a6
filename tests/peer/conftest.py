"""In the place of the suite's own conftest.py, which first downloads nine models.

Servers end with their test.
"""
import pytest
from utils import server_instances


@pytest.fixture(autouse=True)
def stop_server_after_each_test():
    yield
    for server in set(server_instances):
        server.stop()
