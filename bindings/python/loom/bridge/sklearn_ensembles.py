"""scikit-learn: estimators over the outputs of others: votes, stacks, calibration."""

from typing import Any, List

import numpy as np

from ._sklearn_rules import (
    absorb_step, columns, decisions, fixed, floats, is_regressor, mean, row_sums, rule, two_classes,
)  # fmt: skip
from .plan import Plan


@rule("VotingRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    return _weighted(plan, model, x)


def _weighted(plan: Plan, model: Any, x: str) -> str:
    path = plan.origin
    parts = [absorb_step(plan, e, x, path) for e in model.estimators_]
    weights = model._weights_not_none or [1] * len(parts)
    scaled = [plan.op("Mul", p, plan.constant(np.float32(w))) for p, w in zip(parts, weights)]
    return mean(plan, scaled, sum(weights))


@rule("VotingClassifier")
def _(plan: Plan, model: Any, x: str) -> str:
    if model.voting == "soft":
        return _weighted(plan, model, x)
    # Hard votes: the sum of the weights of each class.
    path, count = plan.origin, len(model.classes_)
    weights = model._weights_not_none or [1] * len(model.estimators_)
    votes = []
    for estimator, weight in zip(model.estimators_, weights):
        scores = absorb_step(plan, estimator, x, path)
        if count == 2 and not hasattr(estimator, "predict_proba"):
            scores = plan.op("Concat", plan.op("Neg", scores), scores, axis=1)
        chosen = one_hot(plan, scores, count)
        votes.append(plan.op("Mul", chosen, fixed(plan, np.float32(weight))))
    return votes[0] if len(votes) == 1 else plan.op("Sum", *votes)


def one_hot(plan: Plan, scores: str, classes: int) -> str:
    """1 at the class with the largest score, the first one if several have it; [n, classes]."""
    axis, line = plan.constant(np.array([1])), fixed(plan, np.arange(classes, dtype=np.float64))
    best = plan.op("Equal", scores, plan.op("ReduceMax", scores, axis, keepdims=1))
    place = plan.op("Where", best, line, fixed(plan, np.float32(classes)))
    return floats(plan, plan.op("Equal", line, plan.op("ReduceMin", place, axis, keepdims=1)))


# ---- stacks --------------------------------------------------------------------------------------


def _first_layer(plan: Plan, model: Any, x: str) -> str:
    path, parts = plan.origin, []
    for estimator, method in zip(model.estimators_, model.stack_method_):
        if method == "decision_function":
            parts.append(decisions(plan, estimator, x, path))
        elif method == "predict_proba":
            shares = absorb_step(plan, estimator, x, path)
            two = len(estimator.classes_) == 2
            parts.append(columns(plan, shares, [1]) if two else shares)
        elif is_regressor(estimator):
            parts.append(absorb_step(plan, estimator, x, path))
        else:
            plan.refuse(f"stack_method {method}", "labels of a classifier have no rule in a stack")
    if model.passthrough:
        parts.append(x)
    return parts[0] if len(parts) == 1 else plan.op("Concat", *parts, axis=1)


@rule("StackingClassifier", "StackingRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    path = plan.origin
    return absorb_step(plan, model.final_estimator_, _first_layer(plan, model, x), path)


# ---- calibration ---------------------------------------------------------------------------------


def _isotonic(plan: Plan, model: Any, scores: str) -> str:
    """Lines between the thresholds, and constant outside of them."""
    xs = np.asarray(model.X_thresholds_, np.float64)
    ys = np.asarray(model.y_thresholds_, np.float64)
    if model.out_of_bounds != "clip":
        plan.refuse(f"out_of_bounds {model.out_of_bounds}", "only clip has a rule")
    if len(xs) == 1:
        return plan.op("Add", plan.op("Mul", scores, fixed(plan, np.zeros(1))), plan.constant(ys))
    gaps = np.maximum(np.diff(xs), np.finfo(np.float32).tiny)
    ahead = plan.op("Div", plan.op("Sub", scores, plan.constant(xs[:-1])), plan.constant(gaps))
    low, high = fixed(plan, np.float32(0)), fixed(plan, np.float32(1))
    shares = plan.op("Clip", ahead, low, high)
    return plan.dense(shares, np.diff(ys)[None], ys[:1])


@rule("IsotonicRegression")
def _(plan: Plan, model: Any, x: str) -> str:
    return _isotonic(plan, model, x)


def _calibrated(plan: Plan, model: Any, x: str, path: str) -> str:
    """The probabilities of one calibrated classifier."""
    count = len(model.classes)
    if hasattr(model.estimator, "decision_function"):
        scores = decisions(plan, model.estimator, x, path)
    else:
        scores = absorb_step(plan, model.estimator, x, path)
        scores = columns(plan, scores, [1]) if count == 2 else scores
    if len(model.estimator.classes_) != count:
        plan.refuse("classes", "a fold without all classes has no rule")
    shares: List[str] = []
    for i, calibrator in enumerate(model.calibrators):
        own = columns(plan, scores, [i])
        if type(calibrator).__name__ == "IsotonicRegression":
            shares.append(_isotonic(plan, calibrator, own))
            continue
        if not hasattr(calibrator, "a_"):
            plan.refuse(f"method {model.method}", "only sigmoid and isotonic have a rule")
            return scores
        scaled = plan.op("Mul", own, plan.constant(np.float32(-calibrator.a_)))
        shifted = plan.op("Sub", scaled, plan.constant(np.float32(calibrator.b_)))
        shares.append(plan.op("Sigmoid", shifted))
    if count == 2:
        return two_classes(plan, shares[0])
    wide = plan.op("Concat", *shares, axis=1)
    total = row_sums(plan, wide)
    none = floats(plan, plan.op("Equal", total, fixed(plan, np.float32(0))))
    even = plan.op("Mul", none, fixed(plan, np.full(count, 1 / count)))
    return plan.op("Add", plan.op("Div", wide, plan.op("Add", total, none)), even)


@rule("CalibratedClassifierCV")
def _(plan: Plan, model: Any, x: str) -> str:
    path = plan.origin
    parts = [_calibrated(plan, c, x, path) for c in model.calibrated_classifiers_]
    return mean(plan, parts, len(parts))
