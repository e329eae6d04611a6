"""scikit-learn: linear models, perceptrons, scalers, PCA, k-means, trees and what is made of them.

An absorbed classifier gives probabilities [n, classes] where it has predict_proba, and the values
of its decision function otherwise; a transformer gives what transform() does; a regressor
[n, targets].
"""

from importlib import import_module
from typing import Any

import numpy as np

from . import sklearn_ensembles, sklearn_kernels, sklearn_prepare, trees
from ._sklearn_rules import (
    absorb_step, decision_rule, decisions, dense_array, is_regressor, linear, mean, rule,
    two_classes,
)  # fmt: skip
from .plan import Plan

# Their rules are registered.
_MODULES = (sklearn_ensembles, sklearn_kernels, sklearn_prepare)


def plan_of(estimator: Any) -> Plan:
    """The plan of a fitted estimator; what has no rule is in its problems."""
    version = import_module("sklearn").__version__
    plan = Plan("scikit-learn", version, type(estimator).__name__)
    width = getattr(estimator, "n_features_in_", None)
    if width is None:
        plan.refuse(type(estimator).__name__, "it is not fitted: call fit() first")
        return plan
    x = plan.input("x", ["batch", int(width)])
    plan.output(absorb_step(plan, estimator, x, ""), "y")
    return plan


def native(estimator: Any, x: Any) -> Any:
    """The result of the estimator itself, in the form of the absorbed network's."""
    if getattr(estimator, "voting", "") == "hard":
        return _hard_votes(estimator, x)
    regresses = is_regressor(estimator)
    methods = ("predict_proba", "decision_function", "transform", "predict")
    for method in ("predict",) if regresses else methods:
        if hasattr(estimator, method):
            out = dense_array(getattr(estimator, method)(x))
            return out.reshape(len(out), -1)
    raise TypeError(f"{type(estimator).__name__} neither predicts nor transforms")


def _hard_votes(model: Any, x: Any) -> Any:
    """The weight of the votes for each class, [n, classes]; the largest one is what it predicts."""
    weights = model._weights_not_none or [1] * len(model.estimators_)
    votes = np.asarray(model.transform(x))
    classes = np.arange(len(model.classes_))
    return np.stack([(votes == c) @ np.asarray(weights, float) for c in classes], axis=1)


# ---- linear --------------------------------------------------------------------------------------


@rule(
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "SGDRegressor",
    "LinearSVR",
    "BayesianRidge",
    "ARDRegression",
    "HuberRegressor",
    "Lars",
    "LassoLars",
    "OrthogonalMatchingPursuit",
    "PassiveAggressiveRegressor",
    "TheilSenRegressor",
    "LinearSVC",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "Perceptron",
    "PassiveAggressiveClassifier",
    "MultiTaskLasso",
    "MultiTaskElasticNet",
    "QuantileRegressor",
)
def _(plan: Plan, model: Any, x: str) -> str:
    return linear(plan, model, x)


@rule("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    y = linear(plan, model, x)
    link = getattr(model, "link", "log")
    power = getattr(model, "power", 1)
    if link == "identity" or (link == "auto" and power <= 0):
        return y
    return plan.op("Exp", y)


@decision_rule(
    "LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis", "SGDClassifier"
)
def _(plan: Plan, model: Any, x: str) -> str:
    return linear(plan, model, x)


@rule("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")
def _(plan: Plan, model: Any, x: str) -> str:
    scores = linear(plan, model, x)
    if len(model.classes_) == 2:
        return two_classes(plan, plan.op("Sigmoid", scores))
    if getattr(model, "multi_class", None) == "ovr" or getattr(model, "solver", "") == "liblinear":
        each = plan.op("Sigmoid", scores)
        total = plan.op("ReduceSum", each, plan.constant(np.array([1])), keepdims=1)
        return plan.op("Div", each, total)
    return plan.op("Softmax", scores, axis=1)


@rule("SGDClassifier")
def _(plan: Plan, model: Any, x: str) -> str:
    scores = linear(plan, model, x)
    if model.loss == "log_loss" and len(model.classes_) == 2:
        return two_classes(plan, plan.op("Sigmoid", scores))
    if model.loss in ("log_loss", "modified_huber"):
        plan.refuse(f"loss {model.loss}", "its probabilities have no rule for so many classes")
    return scores


@rule("GaussianNB")
def _(plan: Plan, model: Any, x: str) -> str:
    # log p(c) - 1/2 sum (x - m)^2 / v - 1/2 sum log(2 pi v), as products with x^2 and x.
    variance = model.var_
    offset = np.log(model.class_prior_) - 0.5 * np.log(2 * np.pi * variance).sum(1)
    offset = offset - 0.5 * (model.theta_**2 / variance).sum(1)
    squares = plan.dense(plan.op("Mul", x, x), -0.5 / variance)
    joint = plan.op("Add", squares, plan.dense(x, model.theta_ / variance, offset))
    return plan.op("Softmax", joint, axis=1)


# ---- perceptrons ---------------------------------------------------------------------------------

_ACTIVATIONS = {"identity": None, "relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid"}


@rule("MLPClassifier", "MLPRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    for i, (weight, bias) in enumerate(zip(model.coefs_, model.intercepts_)):
        x = plan.dense(x, weight.T, bias)
        last = i + 1 == len(model.coefs_)
        name = model.out_activation_ if last else model.activation
        if name == "softmax":
            x = plan.op("Softmax", x, axis=1)
        elif name not in _ACTIVATIONS:
            plan.refuse(f"activation {name}", "no rule for it")
        elif _ACTIVATIONS[name]:
            x = plan.op(_ACTIVATIONS[name] or "", x)
    binary = model.out_activation_ == "logistic" and model.n_outputs_ == 1
    return two_classes(plan, x) if binary else x


# ---- transformers --------------------------------------------------------------------------------


@rule("StandardScaler", "RobustScaler")
def _(plan: Plan, model: Any, x: str) -> str:
    center = getattr(model, "mean_", None) if hasattr(model, "mean_") else model.center_
    centers = getattr(model, "with_mean", getattr(model, "with_centering", True))
    if centers and center is not None:
        x = plan.op("Sub", x, plan.constant(center))
    return x if model.scale_ is None else plan.op("Div", x, plan.constant(model.scale_))


@rule("MinMaxScaler")
def _(plan: Plan, model: Any, x: str) -> str:
    x = plan.op("Mul", x, plan.constant(model.scale_))
    x = plan.op("Add", x, plan.constant(model.min_))
    if model.clip:
        low, high = (plan.constant(np.float32(v)) for v in model.feature_range)
        x = plan.op("Clip", x, low, high)
    return x


@rule("MaxAbsScaler")
def _(plan: Plan, model: Any, x: str) -> str:
    return plan.op("Div", x, plan.constant(model.scale_))


@rule("Normalizer")
def _(plan: Plan, model: Any, x: str) -> str:
    axes = plan.constant(np.array([1]))
    if model.norm == "l2":
        squares = plan.op("ReduceSum", plan.op("Mul", x, x), axes, keepdims=1)
        size = plan.op("Sqrt", squares)
    else:
        reduce = "ReduceSum" if model.norm == "l1" else "ReduceMax"
        size = plan.op(reduce, plan.op("Abs", x), axes, keepdims=1)
    tiny = plan.constant(np.float32(np.finfo(np.float32).tiny))
    return plan.op("Div", x, plan.op("Max", size, tiny))


@rule("PCA", "TruncatedSVD", "IncrementalPCA", "FastICA", "FactorAnalysis")
def _(plan: Plan, model: Any, x: str) -> str:
    kind = type(model).__name__
    if kind == "FactorAnalysis":
        plan.refuse(kind, "no rule for its inverse of the noise")
        return x
    mean = getattr(model, "mean_", None)
    if mean is not None:
        x = plan.op("Sub", x, plan.constant(mean))
    y = plan.dense(x, model.components_)
    if getattr(model, "whiten", False) and kind in ("PCA", "IncrementalPCA"):
        y = plan.op("Div", y, plan.constant(np.sqrt(model.explained_variance_)))
    return y


@rule("Binarizer")
def _(plan: Plan, model: Any, x: str) -> str:
    over = plan.op("Greater", x, plan.constant(np.float32(model.threshold)))
    return plan.op("Cast", over, to=1)


@rule("FunctionTransformer")
def _(plan: Plan, model: Any, x: str) -> str:
    if model.func is None:
        return x
    name = getattr(model.func, "__name__", "?")
    ops = {"log": "Log", "exp": "Exp", "sqrt": "Sqrt", "absolute": "Abs", "tanh": "Tanh"}
    if getattr(np, name, None) is model.func and name in ops and not model.kw_args:
        return plan.op(ops[name], x)
    plan.refuse(f"function {name}", "what a function of Python does is not known")
    return x


@rule("KMeans", "MiniBatchKMeans")
def _(plan: Plan, model: Any, x: str) -> str:
    # transform(): the distances |x - c|, by the differences, so that small ones are exact.
    rows = plan.op("Unsqueeze", x, plan.constant(np.array([1])))
    gaps = plan.op("Sub", rows, plan.constant(model.cluster_centers_[None]))
    squares = plan.op("Mul", gaps, gaps)
    return plan.op("Sqrt", plan.op("ReduceSum", squares, plan.constant(np.array([2])), keepdims=0))


# ---- trees ---------------------------------------------------------------------------------------


def _tree(plan: Plan, tree: Any, x: str, values: Any) -> str:
    """A tree as tests and a sum of leaves; values [nodes, outputs]."""
    inner = np.flatnonzero(tree.children_left >= 0)
    if len(inner) == 0:
        zero = plan.op(
            "ReduceSum",
            plan.op("Mul", x, plan.constant(np.zeros(1))),
            plan.constant(np.array([1])),
            keepdims=1,
        )
        return plan.op("Add", zero, plan.constant(values[:1]))
    # scikit-learn compares float32 features with float64 thresholds.
    features = plan.op("Gather", x, plan.constant(tree.feature[inner].astype(np.int64)), axis=1)
    bounds = plan.constant(trees.floor32(tree.threshold[inner]))
    taken = plan.op("Cast", plan.op("LessOrEqual", features, bounds), to=1)
    ways = tree.children_left, tree.children_right
    return trees.leaf_values(plan, taken, *ways, inner, values)


def _leaf_values(tree: Any, probabilities: bool) -> Any:
    values = tree.value[:, 0, :] if probabilities else tree.value[:, :, 0]
    return values / values.sum(1, keepdims=True) if probabilities else values


@rule(
    "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"
)
def _(plan: Plan, model: Any, x: str) -> str:
    classifies = hasattr(model, "classes_")
    if classifies and model.n_outputs_ > 1:
        plan.refuse("several targets", "no rule for classes of several targets")
        return x
    return _tree(plan, model.tree_, x, _leaf_values(model.tree_, classifies))


@rule(
    "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor"
)
def _(plan: Plan, model: Any, x: str) -> str:
    classifies = hasattr(model, "classes_")
    if classifies and model.n_outputs_ > 1:
        plan.refuse("several targets", "no rule for classes of several targets")
        return x
    all_trees = [e.tree_ for e in model.estimators_]
    parts = [_tree(plan, t, x, _leaf_values(t, classifies)) for t in all_trees]
    return mean(plan, parts, len(parts))


@decision_rule("GradientBoostingClassifier")
def _boosted(plan: Plan, model: Any, x: str) -> str:
    columns = []
    for k in range(model.estimators_.shape[1]):
        parts = []
        for stage in model.estimators_[:, k]:
            tree = stage.tree_
            parts.append(_tree(plan, tree, x, model.learning_rate * tree.value[:, 0, :]))
        columns.append(parts[0] if len(parts) == 1 else plan.op("Sum", *parts))
    raw = columns[0] if len(columns) == 1 else plan.op("Concat", *columns, axis=1)
    start = model._raw_predict_init(np.zeros((1, model.n_features_in_), np.float32))
    if type(model.init_).__name__ not in ("DummyClassifier", "DummyRegressor"):
        plan.refuse(f"init {type(model.init_).__name__}", "no rule for a start that is a model")
    return plan.op("Add", raw, plan.constant(start))


@rule("GradientBoostingClassifier", "GradientBoostingRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    raw = _boosted(plan, model, x)
    if not hasattr(model, "classes_"):
        return raw
    if model.loss != "log_loss":
        plan.refuse(f"loss {model.loss}", "no rule for its probabilities")
    return _probabilities_of(plan, raw, len(model.classes_))


_PLAIN_READING = trees.Reading(inside_left=True, truncates=False)


@decision_rule("HistGradientBoostingClassifier")
def _binned(plan: Plan, model: Any, x: str) -> str:
    if model.is_categorical_ is not None and model.is_categorical_.any():
        plan.refuse("categorical_features", "no rule for what prepares them")
    forest = trees.Forest(plan, x, model.n_features_in_, _PLAIN_READING)
    start = np.asarray(model._baseline_prediction, np.float64).reshape(-1)
    columns = []
    for k in range(len(start)):
        stages = [_binned_tree(stage[k].nodes) for stage in model._predictors]
        columns.append(forest.total(stages, start[k : k + 1]))
    return columns[0] if len(columns) == 1 else plan.op("Concat", *columns, axis=1)


@rule("HistGradientBoostingClassifier", "HistGradientBoostingRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    raw = _binned(plan, model, x)
    if hasattr(model, "classes_"):
        return _probabilities_of(plan, raw, len(model.classes_))
    return plan.op("Exp", raw) if model.loss in ("poisson", "gamma") else raw


def _binned_tree(nodes: Any) -> trees.Tree:
    leaf = nodes["is_leaf"].astype(bool)
    return trees.Tree(
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        feature=nodes["feature_idx"].astype(np.int64),
        threshold=trees.floor32(nodes["num_threshold"]),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        zero_missing=np.zeros(len(nodes), bool),
        sets={},
        value=nodes["value"].astype(np.float64)[:, None],
    )


def _probabilities_of(plan: Plan, raw: str, classes: int) -> str:
    if classes == 2:
        return two_classes(plan, plan.op("Sigmoid", raw))
    return plan.op("Softmax", raw, axis=1)


# ---- what is made of others ----------------------------------------------------------------------


@rule("Pipeline")
def _(plan: Plan, model: Any, x: str) -> str:
    path = plan.origin
    for name, step in model.steps:
        if step is not None and step != "passthrough":
            x = absorb_step(plan, step, x, f"{path}.{name}")
    return x


@decision_rule("Pipeline")
def _(plan: Plan, model: Any, x: str) -> str:
    path = plan.origin
    for name, step in model.steps[:-1]:
        if step is not None and step != "passthrough":
            x = absorb_step(plan, step, x, f"{path}.{name}")
    name, last = model.steps[-1]
    return decisions(plan, last, x, f"{path}.{name}")


@rule("FeatureUnion")
def _(plan: Plan, model: Any, x: str) -> str:
    path, parts = plan.origin, []
    for name, step in model.transformer_list:
        part = absorb_step(plan, step, x, f"{path}.{name}")
        weight = (model.transformer_weights or {}).get(name)
        if weight is not None:
            part = plan.op("Mul", part, plan.constant(np.float32(weight)))
        parts.append(part)
    return plan.op("Concat", *parts, axis=1)


@rule("ColumnTransformer")
def _(plan: Plan, model: Any, x: str) -> str:
    path, parts = plan.origin, []
    for name, step, columns in model.transformers_:
        if isinstance(step, str) and step == "drop":
            continue
        indices = np.arange(model.n_features_in_)[model._transformer_to_input_indices[name]]
        if len(indices) == 0:
            continue
        part = plan.op("Gather", x, plan.constant(indices.astype(np.int64)), axis=1)
        if not (isinstance(step, str) and step == "passthrough"):
            part = absorb_step(plan, step, part, f"{path}.{name}")
        parts.append(part)
    return parts[0] if len(parts) == 1 else plan.op("Concat", *parts, axis=1)


@rule("BaggingClassifier", "BaggingRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    path, parts = plan.origin, []
    for member, features in zip(model.estimators_, model.estimators_features_):
        own = plan.op("Gather", x, plan.constant(np.asarray(features, np.int64)), axis=1)
        parts.append(absorb_step(plan, member, own, path))
    return mean(plan, parts, len(parts))


@rule("TransformedTargetRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    if type(model.transformer_).__name__ != "StandardScaler":
        plan.refuse(type(model.transformer_).__name__, "no rule for its inverse")
        return x
    scaler = model.transformer_
    y = absorb_step(plan, model.regressor_, x, plan.origin)
    y = plan.op("Mul", y, plan.constant(scaler.scale_))
    return plan.op("Add", y, plan.constant(scaler.mean_))
