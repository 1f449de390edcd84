"""A classifier that is fitted once for a file's tests."""

import pytest
from tests.estimators.small_task import fitted


@pytest.fixture(scope="module")
def clf():
    return fitted(online_answers=30)
