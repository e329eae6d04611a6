"""The registry of the rules for estimators of scikit-learn, and steps that rules share."""

from importlib import import_module
from typing import Any, Callable, Dict, List

import numpy as np

from .plan import Plan

Rule = Callable[[Plan, Any, str], str]
_RULES: Dict[str, Rule] = {}
# Rules for decision_function() of estimators whose other rule gives probabilities.
_DECISIONS: Dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def decision_rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        _DECISIONS.update(dict.fromkeys(names, function))
        return function

    return enter


def absorb_step(plan: Plan, estimator: Any, x: str, path: str) -> str:
    """The output of an estimator: probabilities, decisions, predictions or transformed rows."""
    return _by(_RULES, plan, estimator, x, path)


def decisions(plan: Plan, estimator: Any, x: str, path: str) -> str:
    """decision_function() of an estimator: [n, 1] for two classes, else [n, classes]."""
    name = type(estimator).__name__
    table = _DECISIONS if name in _DECISIONS else _RULES
    return _by(table, plan, estimator, x, path)


def _by(table: Dict[str, Rule], plan: Plan, estimator: Any, x: str, path: str) -> str:
    name = type(estimator).__name__
    plan.origin = f"{path}.{name}" if path else name
    found = table.get(name)
    if found is None or not type(estimator).__module__.startswith("sklearn."):
        plan.refuse(name, "no rule for this estimator")
        return x
    return found(plan, estimator, x)


def dense_array(value: Any) -> Any:
    return np.asarray(value.toarray() if hasattr(value, "toarray") else value)


def linear(plan: Plan, model: Any, x: str) -> str:
    weight = np.atleast_2d(dense_array(model.coef_))
    bias = np.broadcast_to(np.asarray(model.intercept_), (len(weight),))
    return plan.dense(x, weight, bias)


def two_classes(plan: Plan, probability: str) -> str:
    """[n, 1] of the second class to [n, 2]."""
    rest = plan.op("Sub", fixed(plan, np.ones(1)), probability)
    return plan.op("Concat", rest, probability, axis=1)


def mean(plan: Plan, parts: List[str], count: float) -> str:
    total = parts[0] if len(parts) == 1 else plan.op("Sum", *parts)
    return plan.op("Div", total, fixed(plan, np.float32(count)))


def fixed(plan: Plan, value: Any) -> str:
    """A constant that does not train."""
    return plan.constant(value, parameter=False)


def columns(plan: Plan, x: str, indices: Any) -> str:
    """Columns of [n, features]."""
    return plan.op("Gather", x, plan.constant(np.asarray(indices, np.int64)), axis=1)


def floats(plan: Plan, condition: str) -> str:
    """1 for true and 0 for false."""
    return plan.op("Cast", condition, to=1)


def row_sums(plan: Plan, x: str, axis: int = 1, keep: bool = True) -> str:
    return plan.op("ReduceSum", x, plan.constant(np.array([axis])), keepdims=int(keep))


def is_regressor(estimator: Any) -> bool:
    return bool(import_module("sklearn.base").is_regressor(estimator))
