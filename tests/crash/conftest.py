"""How many rounds of killing, and with which seed."""

import random

import pytest

ROUNDS_IN_THE_TEST_COMMAND = 3


def pytest_addoption(parser):
    parser.addoption("--rounds", type=int, default=ROUNDS_IN_THE_TEST_COMMAND)
    parser.addoption("--seed", type=int, default=None)
    parser.addoption("--consumers", action="store_true", help="kill official consumers too")


@pytest.fixture
def rounds(request):
    return request.config.getoption("--rounds", ROUNDS_IN_THE_TEST_COMMAND)


@pytest.fixture
def seed(request):
    given = request.config.getoption("--seed", None)
    chosen = random.randrange(1 << 32) if given is None else given
    print(f"--seed {chosen}")
    return chosen
