"""scikit-learn: imputers, encoders, bins and polynomials, over rows of numbers."""

import warnings
from typing import Any, List, Tuple

import numpy as np

from ._sklearn_rules import columns, fixed, floats, rule
from .plan import Plan
from .trees import floor32


def _missing(plan: Plan, x: str, marker: Any) -> str:
    """Which values are missing, as booleans; NaN alone differs from itself."""
    if isinstance(marker, float) and np.isnan(marker):
        return plan.op("Not", plan.op("Equal", x, x))
    return plan.op("Equal", x, fixed(plan, np.float32(marker)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


@rule("SimpleImputer")
def _(plan: Plan, model: Any, x: str) -> str:
    if not _is_number(model.missing_values):
        plan.refuse("missing_values", f"{model.missing_values!r} is not a number")
        return x
    marker = float(model.missing_values)
    statistics = np.asarray(model.statistics_)
    if not all(_is_number(value) for value in statistics.tolist()):
        plan.refuse("statistics_", "values that are filled in have to be numbers")
        return x
    kept = np.arange(len(statistics))
    if not model.keep_empty_features:
        kept = np.flatnonzero(~np.isnan(statistics.astype(np.float64)))
    own = x if len(kept) == len(statistics) else columns(plan, x, kept)
    filled = np.nan_to_num(statistics[kept].astype(np.float64))
    y = plan.op("Where", _missing(plan, own, marker), plan.constant(filled), own)
    if model.indicator_ is None:
        return y
    return plan.op("Concat", y, _indicator(plan, model.indicator_, x), axis=1)


def _indicator(plan: Plan, model: Any, x: str) -> str:
    seen = columns(plan, x, model.features_)
    return floats(plan, _missing(plan, seen, float(model.missing_values)))


@rule("MissingIndicator")
def _(plan: Plan, model: Any, x: str) -> str:
    if not _is_number(model.missing_values):
        plan.refuse("missing_values", f"{model.missing_values!r} is not a number")
        return x
    return _indicator(plan, model, x)


# ---- encoders ------------------------------------------------------------------------------------


def _encoded_rows(model: Any) -> Tuple[List[Any], Any, Any]:
    """Per feature its categories; their rows of outputs; the rows of unknown categories.

    The encoder itself encodes each category, so drops and infrequent categories are as in it.
    """
    groups = [np.asarray(c) for c in model.categories_]
    first = np.array([[c[0] for c in groups]], dtype=object)

    def encode(rows: Any) -> Any:
        made = model.transform(rows)
        return np.asarray(made.toarray() if hasattr(made, "toarray") else made, np.float64)

    base, blocks, unknown = encode(first), [], []
    for i, group in enumerate(groups):
        rows = np.repeat(first, len(group), axis=0)
        rows[:, i] = group
        blocks.append(encode(rows) - base)
        far = first.copy()
        far[0, i] = np.nanmax(np.append(group.astype(np.float64), 0.0)) + 1
        unknown.append(encode(far)[0] - base[0] if model.handle_unknown != "error" else None)
    return blocks, base[0], unknown


def _encoder(plan: Plan, model: Any, x: str) -> str:
    groups = [np.asarray(c) for c in model.categories_]
    if any(group.dtype.kind not in "fiub" for group in groups):
        plan.refuse("categories_", "the engine reads numbers; encode texts before")
        return x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        blocks, base, unknown = _encoded_rows(model)
    if not all(np.isfinite(block).all() for block in blocks) or not np.isfinite(base).all():
        plan.refuse("encoded values", "a category is encoded as NaN; set encoded_missing_value")
        return x
    # Each row is: base + the difference of its category in each feature. A feature without a
    # known category has the difference of unknown ones.
    features, values, rows, start = [], [], [], np.array(base)
    for i, (group, block) in enumerate(zip(groups, blocks)):
        gone = np.zeros_like(base) if unknown[i] is None else unknown[i]
        start = start + gone
        for value, row in zip(group.astype(np.float64), block):
            if np.isnan(value) or float(np.float32(value)) == value:  # others match no float32
                features.append(i)
                values.append(value)
                rows.append(row - gone)
    return _looked_up(plan, x, np.array(features), np.array(values), np.array(rows), start)


def _looked_up(plan: Plan, x: str, features: Any, values: Any, rows: Any, start: Any) -> str:
    """start and the sum of the rows of those values that x has."""
    if not np.isfinite(start).all():
        plan.refuse("unknown_value", "unknown categories are encoded as NaN")
        return x
    order = np.argsort(np.isnan(values), kind="stable")
    features, values, rows = features[order], values[order], rows[order]
    known = int((~np.isnan(values)).sum())
    parts = []
    if known:
        same = plan.op("Equal", columns(plan, x, features[:known]), fixed(plan, values[:known]))
        parts.append(floats(plan, same))
    if known < len(values):
        gone = _missing(plan, columns(plan, x, features[known:]), float("nan"))
        parts.append(floats(plan, gone))
    hits = parts[0] if len(parts) == 1 else plan.op("Concat", *parts, axis=1)
    return plan.dense(hits, rows.T, start, parameter=False)


@rule("OneHotEncoder", "OrdinalEncoder")
def _(plan: Plan, model: Any, x: str) -> str:
    return _encoder(plan, model, x)


# ---- bins and polynomials ------------------------------------------------------------------------


@rule("KBinsDiscretizer")
def _(plan: Plan, model: Any, x: str) -> str:
    edges = [np.asarray(e, np.float64)[1:-1] for e in model.bin_edges_]
    widths = [len(e) + 1 for e in edges]
    plain = model.encode == "ordinal"
    rows: List[Any] = []
    starts: List[Any] = []
    total = len(widths) if plain else sum(widths)
    at = 0
    for i, width in enumerate(widths):
        start = np.zeros(total)
        if not plain:
            start[at] = 1.0  # below the first inner edge
        starts.append(start)
        for k in range(1, width):
            row = np.zeros(total)
            if plain:
                row[i] = 1.0
            else:
                row[at + k - 1], row[at + k] = -1.0, 1.0
            rows.append(row)
        at += width
    base = np.sum(starts, axis=0)
    features = np.repeat(np.arange(len(edges)), [len(e) for e in edges])
    if len(features) == 0:
        return plan.dense(x, np.zeros((total, model.n_features_in_)), base, parameter=False)
    # x >= edge, where the edge is a float64: not below the least float32 that is not below it.
    bounds = -floor32(-np.concatenate(edges))
    reached = plan.op("GreaterOrEqual", columns(plan, x, features), fixed(plan, bounds))
    return plan.dense(floats(plan, reached), np.array(rows).T, base, parameter=False)


@rule("PolynomialFeatures")
def _(plan: Plan, model: Any, x: str) -> str:
    powers = np.asarray(model.powers_)
    degree = max(1, int(powers.sum(1).max(initial=0)))
    width = powers.shape[1]
    factors = np.full((len(powers), degree), width)  # the column of ones
    for row, exponents in enumerate(powers):
        listed = np.repeat(np.arange(width), exponents)
        factors[row, : len(listed)] = listed
    first = columns(plan, x, [0])
    ones = plan.op("Add", plan.op("Mul", first, fixed(plan, np.zeros(1))), fixed(plan, np.ones(1)))
    wide = plan.op("Concat", x, ones, axis=1)
    y = columns(plan, wide, factors[:, 0])
    for k in range(1, degree):
        y = plan.op("Mul", y, columns(plan, wide, factors[:, k]))
    return y
