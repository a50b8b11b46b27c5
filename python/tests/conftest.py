import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "python"))


@pytest.fixture(scope="session")
def digits():
    """400 records of generated digits as arrays."""
    import numpy as np
    import tutti
    batches = list(tutti.data.Digits(400, batch=100, shuffle=False))
    return tuple(np.concatenate(parts) for parts in zip(*batches))


@pytest.fixture
def small():
    """A function that makes a small classifier."""
    import tutti

    def make(**options):
        model = tutti.Sequential([tutti.Flatten(), tutti.Dense(16, act="relu"), tutti.Dense(10)],
                                 **options)
        model.compile("adam", "cross_entropy", ["accuracy"])
        return model

    return make
