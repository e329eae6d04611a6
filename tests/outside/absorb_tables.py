"""Tables that models of trees are fitted to: numbers, ties, categories and missing values."""

import numpy as np

_random = np.random.default_rng(8)
X = _random.normal(size=(200, 4)).astype(np.float32)
X[:, 0] = np.round(X[:, 0])
X[:, 3] = _random.integers(0, 12, 200)
WHOLE = X.copy()  # nothing is missing
TARGET = X[:, 0] * X[:, 1] + np.where(X[:, 3] % 3 == 1, 1.5, 0)
POSITIVE = np.exp(TARGET / 2)
BINARY = TARGET > 0
CLASSES = np.searchsorted(np.quantile(TARGET, [1 / 3, 2 / 3]), TARGET)
X[_random.random(X.shape) < 0.1] = np.nan
KINDS = 3  # the column of categories
