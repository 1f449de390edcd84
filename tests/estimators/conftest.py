"""A classifier that is fitted once for a file's tests."""

from __future__ import annotations

import pytest
from tests.estimators.small_task import fitted


@pytest.fixture(scope="module")
def clf():
    return fitted(online_answers=30)
