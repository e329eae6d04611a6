"""Models of XGBoost, by name, for absorb_check.py."""

import xgboost
from absorb_tables import BINARY, CLASSES, KINDS, POSITIVE, TARGET, WHOLE, X


def modules():
    """(name, booster or estimator, example inputs)."""
    three = {"objective": "multi:softprob", "num_class": 3}
    types = ["c" if i == KINDS else "q" for i in range(X.shape[1])]
    for name, target, rounds, parameters in [
        ("squared errors", TARGET, 5, {}),
        ("squared errors, dart", TARGET, 5, {"booster": "dart", "rate_drop": 0.5}),
        ("random forest", TARGET, 1, {"num_parallel_tree": 8, "subsample": 0.5}),
        ("categories one by one", TARGET, 5, {"max_cat_to_onehot": 64}),
        ("poisson", POSITIVE, 5, {"objective": "count:poisson"}),
        ("tweedie", POSITIVE, 5, {"objective": "reg:tweedie"}),
        ("2 classes", BINARY, 5, {"objective": "binary:logistic"}),
        ("2 classes, hinge", BINARY, 5, {"objective": "binary:hinge"}),
        ("3 classes, sets and missing values", CLASSES, 5, three),
        ("3 classes, the largest", CLASSES, 5, {**three, "objective": "multi:softmax"}),
        ("100 rounds", TARGET, 100, {"max_depth": 5}),
    ]:
        data = xgboost.DMatrix(X, target, feature_types=types, enable_categorical=True)
        yield name, xgboost.train({"max_depth": 3, **parameters}, data, rounds), X
    linear = xgboost.train({"booster": "gblinear", **three}, xgboost.DMatrix(WHOLE, CLASSES), 5)
    yield "linear, 3 classes", linear, WHOLE
    for model, target in [
        (xgboost.XGBClassifier(n_estimators=8), CLASSES),
        (xgboost.XGBRegressor(n_estimators=8, missing=0.0), TARGET),
    ]:
        yield type(model).__name__, model.fit(WHOLE, target), WHOLE
