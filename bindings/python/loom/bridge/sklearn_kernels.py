"""scikit-learn: support vector machines and nearest neighbors."""

from typing import Any, List

import numpy as np

from ._sklearn_rules import decision_rule, dense_array, fixed, floats, row_sums, rule
from .plan import Plan

MAX_NEIGHBORS = 64  # each one adds nodes


def _squared_distances(plan: Plan, x: str, rows: Any) -> str:
    """|x - r|^2 to each row, [n, rows]; from the center of the rows, so that little cancels."""
    center = rows.mean(0)
    near = rows - center
    moved = plan.op("Sub", x, plan.constant(center))
    cross = plan.dense(moved, -2.0 * near)
    own = row_sums(plan, plan.op("Mul", moved, moved))
    total = plan.op("Add", plan.op("Add", cross, own), plan.constant((near**2).sum(1)))
    return plan.op("Max", total, fixed(plan, np.float32(0)))


def _kernel(plan: Plan, model: Any, x: str, vectors: Any) -> str:
    if not isinstance(model.kernel, str) or model.kernel == "precomputed":
        plan.refuse(f"kernel {model.kernel}", "only linear, poly, rbf and sigmoid have a rule")
        return plan.dense(x, vectors)
    gamma = float(model._gamma)
    if model.kernel == "rbf":
        distances = _squared_distances(plan, x, vectors)
        return plan.op("Exp", plan.op("Mul", distances, plan.constant(np.float32(-gamma))))
    if model.kernel == "linear":
        return plan.dense(x, vectors)
    inner = plan.dense(x, gamma * vectors, np.full(len(vectors), float(model.coef0)))
    if model.kernel == "sigmoid":
        return plan.op("Tanh", inner)
    y = inner
    for _ in range(int(model.degree) - 1):
        y = plan.op("Mul", y, inner)
    if int(model.degree) < 1:
        plan.refuse(f"degree {model.degree}", "a polynomial of degree 0 is a constant")
    return y


def _vectors(plan: Plan, model: Any) -> Any:
    found = dense_array(model.support_vectors_)
    if len(found) == 0:
        plan.refuse(type(model).__name__, "it has no support vectors")
        return np.zeros((1, model.n_features_in_))
    return np.asarray(found, np.float64)


@rule("SVR", "NuSVR", "OneClassSVM")
def _(plan: Plan, model: Any, x: str) -> str:
    kernel = _kernel(plan, model, x, _vectors(plan, model))
    return plan.dense(kernel, dense_array(model.dual_coef_), np.asarray(model.intercept_))


def _pairs(model: Any) -> Any:
    """Weights [pairs, vectors] of the decisions between two classes."""
    coefficients = dense_array(model.dual_coef_)
    if len(model.classes_) == 2:
        return coefficients
    ends = np.cumsum(model.n_support_)
    of = [slice(end - count, end) for end, count in zip(ends, model.n_support_)]
    rows = []
    for i in range(len(of)):
        for j in range(i + 1, len(of)):
            row = np.zeros(coefficients.shape[1])
            row[of[i]], row[of[j]] = coefficients[j - 1, of[i]], coefficients[i, of[j]]
            rows.append(row)
    return np.array(rows)


@decision_rule("SVC", "NuSVC")
def _svc_decisions(plan: Plan, model: Any, x: str) -> str:
    kernel = _kernel(plan, model, x, _vectors(plan, model))
    between = plan.dense(kernel, _pairs(model), np.asarray(model.intercept_))
    count = len(model.classes_)
    if count == 2 or model.decision_function_shape == "ovo":
        return between
    # Votes of the pairs, and their sums squashed below a third (_ovr_decision_function).
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    signs, votes = np.zeros((2, len(pairs), count))
    start = np.zeros(count)
    for k, (i, j) in enumerate(pairs):
        signs[k, i], signs[k, j] = 1, -1
        votes[k, i], votes[k, j] = -1, 1
        start[i] += 1
    second = floats(plan, plan.op("Less", between, fixed(plan, np.float32(0))))
    voted = plan.dense(second, votes.T, start, parameter=False)
    sums = plan.dense(between, signs.T, parameter=False)
    size = plan.op("Add", plan.op("Abs", sums), fixed(plan, np.float32(1)))
    squashed = plan.op("Div", sums, plan.op("Mul", size, fixed(plan, np.float32(3))))
    return plan.op("Add", voted, squashed)


@rule("SVC", "NuSVC")
def _(plan: Plan, model: Any, x: str) -> str:
    if hasattr(model, "predict_proba"):
        why = "libsvm finds probabilities by iteration; use CalibratedClassifierCV(SVC())"
        plan.refuse("probability", why)
    return _svc_decisions(plan, model, x)


# ---- neighbors -----------------------------------------------------------------------------------


def _distances(plan: Plan, model: Any, x: str, rows: Any) -> str:
    """To each training row, [n, rows], by differences: equal points are at distance 0."""
    metric, p = model.effective_metric_, float(model.effective_metric_params_.get("p", 2))
    names = {"euclidean": 2.0, "l2": 2.0, "manhattan": 1.0, "l1": 1.0, "cityblock": 1.0}
    if metric == "chebyshev":
        p = np.inf
    elif metric != "minkowski":
        p = names.get(metric, 0.0)
    if p <= 0 or model.effective_metric_params_.get("w") is not None:
        plan.refuse(f"metric {metric}", "only Minkowski's metrics without weights have a rule")
        p = 2.0
    gaps = plan.op("Sub", plan.op("Unsqueeze", x, plan.constant(np.array([1]))),
                   plan.constant(rows[None]))  # fmt: skip
    if p == 2:
        return plan.op("Sqrt", row_sums(plan, plan.op("Mul", gaps, gaps), 2, keep=False))
    sizes = plan.op("Abs", gaps)
    if np.isinf(p):
        return plan.op("ReduceMax", sizes, plan.constant(np.array([2])), keepdims=0)
    if p == 1:
        return row_sums(plan, sizes, 2, keep=False)
    powers = plan.op("Pow", sizes, fixed(plan, np.float32(p)))
    return plan.op("Pow", row_sums(plan, powers, 2, keep=False), fixed(plan, np.float32(1 / p)))


def _nearest(plan: Plan, distances: str, count: int, rows: int) -> List[Any]:
    """The mask [n, rows] and the distance [n, 1] of each neighbor, nearest first."""
    line = fixed(plan, np.arange(rows, dtype=np.float64))
    axis, found = plan.constant(np.array([1])), []
    for k in range(count):
        least = plan.op("ReduceMin", distances, axis, keepdims=1)
        same = plan.op("Equal", distances, least)
        place = plan.op("Where", same, line, fixed(plan, np.float32(rows)))
        first = plan.op("ReduceMin", place, axis, keepdims=1)
        mask = plan.op("Equal", line, first)
        found.append((floats(plan, mask), least))
        if k + 1 < count:
            far = fixed(plan, np.float32(np.finfo(np.float32).max))
            distances = plan.op("Where", mask, far, distances)
    return found


def _weights(plan: Plan, found: List[Any]) -> str:
    """Weights of the training rows, [n, rows]: 1 / distance, or 1 for exact hits if any."""
    zero, one = fixed(plan, np.float32(0)), fixed(plan, np.float32(1))
    hits = [floats(plan, plan.op("Equal", least, zero)) for _, least in found]
    hit = hits[0]  # the nearest one
    parts = []
    for (mask, least), exact in zip(found, hits):
        safe = plan.op("Add", least, exact)
        inverse = plan.op("Mul", plan.op("Div", one, safe), plan.op("Sub", one, hit))
        parts.append(plan.op("Mul", mask, plan.op("Add", inverse, exact)))
    return parts[0] if len(parts) == 1 else plan.op("Sum", *parts)


@rule("KNeighborsClassifier", "KNeighborsRegressor")
def _(plan: Plan, model: Any, x: str) -> str:
    rows = dense_array(model._fit_X).astype(np.float64)
    classifies = hasattr(model, "classes_")
    y = np.asarray(model._y)
    if classifies and y.ndim > 1:
        plan.refuse("several targets", "no rule for classes of several targets")
        return x
    if model.weights not in (None, "uniform", "distance"):
        plan.refuse("weights", "a function of Python has no rule")
        return x
    if model.n_neighbors > MAX_NEIGHBORS:
        plan.refuse(f"n_neighbors {model.n_neighbors}", f"at most {MAX_NEIGHBORS} have a rule")
        return x
    found = _nearest(plan, _distances(plan, model, x, rows), model.n_neighbors, len(rows))
    if model.weights == "distance":
        weights = _weights(plan, found)
    else:
        masks = [mask for mask, _ in found]
        weights = masks[0] if len(masks) == 1 else plan.op("Sum", *masks)
    values = np.eye(len(model.classes_))[y] if classifies else y.reshape(len(y), -1)
    total = plan.dense(weights, values.T)
    return plan.op("Div", total, row_sums(plan, weights))
