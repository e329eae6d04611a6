"""Models of LightGBM, by name, for absorb_check.py."""

import lightgbm
from absorb_tables import BINARY, CLASSES, KINDS, POSITIVE, TARGET, X


def modules():
    """(name, booster or estimator, example inputs)."""
    for name, target, parameters in [
        ("regression", TARGET, {}),
        ("absolute errors", TARGET, {"objective": "regression_l1"}),
        ("regression, dart", TARGET, {"boosting": "dart"}),
        (
            "regression, random forest",
            TARGET,
            {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        ),
        ("zeros are missing", TARGET, {"zero_as_missing": True}),
        ("nothing is missing", TARGET, {"use_missing": False}),
        ("poisson", POSITIVE, {"objective": "poisson"}),
        ("tweedie", POSITIVE, {"objective": "tweedie"}),
        ("2 classes", BINARY, {"objective": "binary"}),
        (
            "3 classes, sets and missing values",
            CLASSES,
            {"objective": "multiclass", "num_class": 3},
        ),
        ("3 classes, one against all", CLASSES, {"objective": "multiclassova", "num_class": 3}),
        ("100 rounds", TARGET, {"num_iterations": 100, "num_leaves": 31}),
    ]:
        data = lightgbm.Dataset(X, target, categorical_feature=[KINDS])
        small = {"verbose": -1, "num_leaves": 7, "min_data_per_group": 4, "cat_smooth": 1}
        yield name, lightgbm.train({"num_iterations": 5, **small, **parameters}, data), X
    for model, target in [
        (lightgbm.LGBMClassifier(n_estimators=8, verbose=-1), CLASSES),
        (lightgbm.LGBMRegressor(n_estimators=8, verbose=-1), TARGET),
    ]:
        yield type(model).__name__, model.fit(X, target), X
