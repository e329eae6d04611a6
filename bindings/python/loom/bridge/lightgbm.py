"""LightGBM: boosters, its estimators for scikit-learn, and its model files of text.

The text that a booster writes of itself is what is read, so all three are one path. A classifier
gives predict_proba; a booster, a regressor and a ranker what predict() gives, [n, groups].
"""

from importlib import import_module
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from ..errors import BadFileError
from .plan import Plan
from .trees import Forest, Reading, Tree, edges, floor32

_READING = Reading(inside_left=True, truncates=True, tiny_is_zero=True)
_CATEGORICAL, _DEFAULT_LEFT = 1, 2  # bits of decision_type; the next two say what is missing
_MISSING_NONE, _MISSING_ZERO = 0, 1


def absorb_model(model: Any, inputs: List[Any]) -> Tuple[Plan, List[Any], List[Any]]:
    """The plan, the inputs, and what LightGBM says for them; of a Booster or an estimator."""
    library = import_module("lightgbm")
    booster = model.booster_ if hasattr(model, "booster_") else model
    classes = len(model.classes_) if hasattr(model, "classes_") else 0
    head, blocks = _parse(booster.model_to_string())
    plan = Plan("LightGBM", library.__version__, type(model).__name__)
    trees = [_tree(plan, block) for block in blocks]
    _plan(plan, head, blocks, trees, classes == 2)
    width = int(head["max_feature_idx"]) + 1
    x = np.asarray(inputs[0], np.float32) if inputs else edges(trees, width)
    if plan.problems:
        return plan, [x], []
    says = model.predict_proba if classes else model.predict
    if classes and not callable(model.objective_):
        return plan, [x], [np.asarray(says(x)).reshape(len(x), -1)]
    return plan, [x], [np.asarray(booster.predict(x)).reshape(len(x), -1)]


def load_file(path: str) -> Any:
    """A Booster of a text file. Raises BadFileError where LightGBM cannot read it."""
    library = import_module("lightgbm")
    try:
        return library.Booster(model_file=path)
    except library.basic.LightGBMError as error:
        raise BadFileError(f"{path}: LightGBM cannot read it: {error}") from None


def _parse(text: str) -> Tuple[Dict[str, str], List[Dict[str, str]]]:
    """The lines key=value of the head and of each tree."""
    head: Dict[str, str] = {}
    blocks: List[Dict[str, str]] = []
    for line in text.splitlines():
        if line == "end of trees":
            break
        key, equals, value = line.partition("=")
        if key == "Tree":
            blocks.append({})
        (blocks[-1] if blocks else head)[key] = value if equals else key
    return head, blocks


def _tree(plan: Plan, block: Dict[str, str]) -> Tree:
    """Inner nodes as LightGBM numbers them, then its leaves, which children name as ~leaf."""
    leaves = int(block["num_leaves"])
    inner = leaves - 1
    if block.get("is_linear", "0") != "0":
        plan.refuse("linear_tree", "leaves that are linear models have no rule")

    def read(key: str, kind: Any) -> Any:
        return np.array(block.get(key, "").split()[: max(inner, 0)], kind)

    def padded(values: Any, fill: Any) -> Any:
        return np.concatenate([values, np.full(leaves, fill, values.dtype)])

    left, right = read("left_child", np.int64), read("right_child", np.int64)
    left, right = (np.where(c < 0, inner + ~c, c) for c in (left, right))
    decision, exact = read("decision_type", np.int64), read("threshold", np.float64)
    missing = decision >> 2 & 3
    default_left = (decision & _DEFAULT_LEFT) != 0
    # Where nothing is said to be missing, NaN is compared as 0.
    goes_left = np.where(missing == _MISSING_NONE, exact >= 0, default_left)
    values = np.array(block["leaf_value"].split(), np.float64)
    return Tree(
        left=padded(left, -1),
        right=padded(right, -1),
        feature=padded(read("split_feature", np.int64), 0),
        threshold=padded(floor32(exact), 0),
        missing_left=padded(goes_left, False),
        zero_missing=padded(missing == _MISSING_ZERO, False),
        sets=_sets(block, np.flatnonzero(decision & _CATEGORICAL), exact),
        value=np.concatenate([np.zeros(inner), values])[:, None],
    )


def _sets(block: Dict[str, str], nodes: Any, threshold: Any) -> Dict[int, Any]:
    """The bits of cat_threshold, 32 to a word; threshold says which stretch is a node's."""
    if len(nodes) == 0:
        return {}
    bounds = [int(v) for v in block["cat_boundaries"].split()]
    words = [int(v) for v in block["cat_threshold"].split()]
    out = {}
    for node in nodes:
        which = int(threshold[node])
        own = words[bounds[which] : bounds[which + 1]]
        out[int(node)] = np.array(
            [32 * i + bit for i, word in enumerate(own) for bit in range(32) if word >> bit & 1]
        )
    return out


def _plan(
    plan: Plan,
    head: Dict[str, str],
    blocks: List[Dict[str, str]],
    trees: List[Tree],
    both_classes: bool,
) -> None:
    width = int(head["max_feature_idx"]) + 1
    x = plan.input("x", ["batch", width])
    groups = int(head["num_tree_per_iteration"])
    forest = Forest(plan, x, width, _READING)
    columns = []
    for group in range(groups):
        plan.origin = f"trees of output {group}" if groups > 1 else "trees"
        own = trees[group::groups]
        total = forest.total(own, np.zeros(1))
        if "average_output" in head and own:
            total = plan.op("Div", total, plan.constant(np.float32(len(own)), parameter=False))
        columns.append(total)
    raw = columns[0] if groups == 1 else plan.op("Concat", *columns, axis=1)
    plan.origin = "objective"
    y = _link(plan, head.get("objective", "").split(), raw)
    if both_classes and groups == 1:
        rest = plan.op("Sub", plan.constant(np.ones(1), parameter=False), y)
        y = plan.op("Concat", rest, y, axis=1)
    plan.output(y, "y")


Link = Callable[[Plan, str], str]
_LINKS: Dict[str, Link] = {
    **dict.fromkeys(
        ["regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank"],
        lambda plan, raw: raw,
    ),
    "rank_xendcg": lambda plan, raw: raw,
    **dict.fromkeys(["poisson", "gamma", "tweedie"], lambda plan, raw: plan.op("Exp", raw)),
    "multiclass": lambda plan, raw: plan.op("Softmax", raw, axis=1),
    "cross_entropy": lambda plan, raw: plan.op("Sigmoid", raw),
    "cross_entropy_lambda": lambda plan, raw: plan.op("Softplus", raw),
}


def _link(plan: Plan, words: List[str], raw: str) -> str:
    """The output of an objective for the sums; words: "binary sigmoid:1". None: as they are."""
    name = words[0] if words else "custom"
    options: Dict[str, str] = {}
    for word in words[1:]:
        key, _, value = word.partition(":")
        options[key] = value
    if name == "custom":
        return raw
    if name == "regression" and "sqrt" in options:
        return plan.op("Mul", raw, plan.op("Abs", raw))
    if name in ("binary", "multiclassova"):
        steep = plan.constant(np.float32(options.get("sigmoid", "1")), parameter=False)
        return plan.op("Sigmoid", plan.op("Mul", raw, steep))
    if name in _LINKS:
        return _LINKS[name](plan, raw)
    plan.refuse(f"objective {name}", "no rule for what it makes of the sums")
    return raw
