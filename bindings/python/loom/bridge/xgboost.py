"""XGBoost: boosters, its estimators for scikit-learn, and its model files (JSON and UBJSON).

The JSON that a booster writes of itself is what is read, so all of them are one path. A classifier
gives predict_proba; a booster, a regressor and a ranker what predict() gives, [n, groups].
"""

import json
from importlib import import_module
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from ..errors import BadFileError
from .plan import Plan
from .trees import Forest, Reading, Tree, edges

_READING = Reading(inside_left=False, truncates=False)
_SPLIT_BY_SET = 1


def absorb_model(model: Any, inputs: List[Any]) -> Tuple[Plan, List[Any], List[Any]]:
    """The plan, the inputs, and what XGBoost says for them; of a Booster or an estimator."""
    library = import_module("xgboost")
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    classes = int(model.n_classes_) if hasattr(model, "n_classes_") else 0
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    plan = Plan("XGBoost", library.__version__, type(model).__name__)
    rounds = _rounds(model)
    trees = _plan(plan, learner, rounds, getattr(model, "missing", np.nan), classes == 2)
    width = int(learner["learner_model_param"]["num_feature"])
    x = np.asarray(inputs[0], np.float32) if inputs else edges(trees, width)
    if plan.problems:
        return plan, [x], []
    if classes:
        wanted = model.predict_proba(x)
    elif booster is not model:
        wanted = model.predict(x)
    else:
        wanted = booster.predict(_matrix(library, booster, x))
    return plan, [x], [np.asarray(wanted, np.float32).reshape(len(x), -1)]


def load_file(path: str) -> Any:
    """A Booster of a file. Raises BadFileError where XGBoost cannot read it."""
    library = import_module("xgboost")
    with open(path, "rb") as file:
        data = bytearray(file.read())
    try:
        return library.Booster(model_file=data)
    except library.core.XGBoostError as error:
        said = str(error).strip().splitlines()[0]
        raise BadFileError(f"{path}: XGBoost cannot read it: {said}") from None


def _matrix(library: Any, booster: Any, x: Any) -> Any:
    return library.DMatrix(
        x,
        feature_names=booster.feature_names,
        feature_types=booster.feature_types,
        enable_categorical=True,
    )


def _rounds(model: Any) -> Any:
    """How many rounds predict() of an estimator takes; None: all."""
    if not hasattr(model, "get_booster"):
        return None
    try:
        return int(model.best_iteration) + 1
    except AttributeError:  # it was fitted without early stopping
        return None


def _plan(
    plan: Plan, learner: Dict[str, Any], rounds: Any, missing: float, both_classes: bool
) -> List[Tree]:
    shape, objective = learner["learner_model_param"], learner["objective"]["name"]
    width = int(shape["num_feature"])
    groups = max(int(shape["num_class"]), int(shape.get("num_target", 1)), 1)
    x = plan.input("x", ["batch", width])
    if not np.isnan(missing):
        x = _without(plan, x, missing)
    text = shape["base_score"].strip("[]")
    start = np.broadcast_to(np.array(text.split(","), np.float32), (groups,))
    start = _start(objective, start.astype(np.float64))
    booster = learner["gradient_booster"]
    trees: List[Tree] = []
    plan.origin = booster["name"]
    if booster["name"] == "gblinear":
        weights = np.array(booster["model"]["weights"], np.float64).reshape(width + 1, groups)
        # The linear booster takes the first of several starts.
        raw = plan.dense(x, weights[:-1].T, weights[-1] + start[0])
    else:
        raw, trees = _trees(plan, booster, x, width, start, rounds)
    plan.origin = "objective"
    y = _link(plan, objective, raw)
    if both_classes and groups == 1:
        rest = plan.op("Sub", plan.constant(np.ones(1), parameter=False), y)
        y = plan.op("Concat", rest, y, axis=1)
    plan.output(y, "y")
    return trees


def _without(plan: Plan, x: str, missing: float) -> str:
    """x with NaN where it is the number that stands for missing: 0/0, and the rest over 1."""
    same = plan.op("Equal", x, plan.constant(np.float32(missing), parameter=False))
    kept = plan.op("Cast", plan.op("Not", same), to=1)
    return plan.op("Div", plan.op("Mul", x, kept), kept)


def _trees(
    plan: Plan, booster: Dict[str, Any], x: str, width: int, start: Any, rounds: Any
) -> Tuple[str, List[Tree]]:
    weights = booster.get("weight_drop")  # of dart
    model = booster["gbtree"]["model"] if "gbtree" in booster else booster["model"]
    many = len(model["trees"])
    if rounds is not None:
        until = model.get("iteration_indptr", range(many + 1))
        many = min(many, int(until[min(rounds, len(until) - 1)]))
    trees = []
    for i, described in enumerate(model["trees"][:many]):
        if int(described["tree_param"].get("size_leaf_vector", 1)) > 1:
            plan.refuse("multi_output_tree", "leaves that hold a value for each target")
            return x, []
        trees.append(_tree(described, 1.0 if weights is None else float(weights[i])))
    forest = Forest(plan, x, width, _READING)
    columns = []
    for group, first in enumerate(start):
        own = [t for t, g in zip(trees, model["tree_info"]) if g == group]
        columns.append(forest.total(own, np.array([first])))
    return (columns[0] if len(columns) == 1 else plan.op("Concat", *columns, axis=1)), trees


def _tree(described: Dict[str, Any], weight: float) -> Tree:
    left = np.array(described["left_children"], np.int64)
    bounds = np.array(described["split_conditions"], np.float32)  # of leaves: their values
    sets: Dict[int, Any] = {}
    for node, at, size in zip(
        described.get("categories_nodes", []),
        described.get("categories_segments", []),
        described.get("categories_sizes", []),
    ):
        sets[int(node)] = np.array(described["categories"][at : at + size], np.int64)
    for node in np.flatnonzero(np.array(described.get("split_type", [])) == _SPLIT_BY_SET):
        sets.setdefault(int(node), np.array([], np.int64))
    return Tree(
        left=left,
        right=np.array(described["right_children"], np.int64),
        feature=np.array(described["split_indices"], np.int64),
        # A number goes left where it is below its bound: where it is at most the float32 before.
        threshold=np.nextafter(bounds, np.float32(-np.inf)),
        missing_left=np.array(described["default_left"], bool),
        zero_missing=np.zeros(len(left), bool),
        sets=sets,
        value=(weight * bounds.astype(np.float64))[:, None],
    )


# ---- objectives: how base_score becomes a start of the sums, and what is made of them ------------

_LOGISTIC = ("binary:logistic", "reg:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_PLAIN = (
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:pseudohubererror",
    "reg:absoluteerror",
    "reg:quantileerror",
    "reg:expectileerror",
    "binary:logitraw",
    "rank:pairwise",
    "rank:ndcg",
    "rank:map",
)

Link = Callable[[Plan, str], str]
_LINKS: Dict[str, Link] = {
    **dict.fromkeys(_PLAIN, lambda plan, raw: raw),
    **dict.fromkeys(_LOGISTIC, lambda plan, raw: plan.op("Sigmoid", raw)),
    **dict.fromkeys(_LOG, lambda plan, raw: plan.op("Exp", raw)),
    "multi:softprob": lambda plan, raw: plan.op("Softmax", raw, axis=1),
    "multi:softmax": lambda plan, raw: plan.op(
        "Cast", plan.op("ArgMax", raw, axis=1, keepdims=1), to=1
    ),
    "binary:hinge": lambda plan, raw: plan.op(
        "Cast", plan.op("Greater", raw, plan.constant(np.zeros(1), parameter=False)), to=1
    ),
}


def _start(objective: str, score: Any) -> Any:
    if objective in _LOGISTIC:
        return np.log(score / (1 - score))
    return np.log(score) if objective in _LOG else score


def _link(plan: Plan, objective: str, raw: str) -> str:
    if objective in _LINKS:
        return _LINKS[objective](plan, raw)
    plan.refuse(f"objective {objective}", "no rule for what it makes of the sums")
    return raw
