"""Trees as nodes of a Plan: all tests of a tree at once, then the leaf that they lead to.

A leaf is reached where as many tests turn out as its path asks: the child of a test that holds
counts 1, the other one -1 (Hummingbird, Nakandala and others 2020, the strategy GEMM). Comparisons
are made in float32, as exact as those of the source: see floor32().
"""

from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from .plan import Plan


class Tree(NamedTuple):
    """A tree whose tests send rows left or right; arrays are indexed by node."""

    left: Any  # children; -1 at leaves
    right: Any
    feature: Any  # the column that a node tests
    threshold: Any  # float32: a number goes left where it is at most this
    missing_left: Any  # bool: where a missing value goes; not for NaN in sets that go left
    zero_missing: Any  # bool: zeros are missing as well; only where tiny_is_zero
    sets: Dict[int, Any]  # of nodes that test categories: which ones
    value: Any  # [nodes, outputs]; of leaves


class Reading(NamedTuple):
    """How a library reads categories and numbers."""

    inside_left: bool  # a member of the set goes left, everything else right
    truncates: bool  # -0.5 is category 0; else negative numbers are in no set
    tiny_is_zero: bool = False  # numbers of at most 1e-35 are read as 0


def floor32(thresholds: Any) -> Any:
    """The largest float32 that is not above each: x <= it decides for any float32 x as x <= t."""
    exact = np.asarray(thresholds, np.float64)
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    above = rounded.astype(np.float64) > exact
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded


def leaf_values(plan: Plan, taken: str, yes: Any, no: Any, inner: Any, values: Any) -> str:
    """The values of the reached leaves, [n, outputs]; values [nodes, outputs].

    taken [n, tests]: 1 where the test of inner[i] holds, 0 where not; yes and no [nodes]: the child
    for each case.
    """
    leaves, paths, wanted = _paths(yes, no, inner)
    sums = plan.op("MatMul", taken, plan.constant(paths.T, parameter=False))
    reached = plan.op("Cast", plan.op("Equal", sums, plan.constant(wanted, parameter=False)), to=1)
    return plan.op("MatMul", reached, plan.constant(values[leaves]))


def _paths(yes: Any, no: Any, inner: Any) -> Any:
    """Leaves, their paths [leaves, tests], and how many tests have to hold."""
    number = {int(node): i for i, node in enumerate(inner)}
    leaves: List[int] = []
    paths: List[Any] = []
    waiting: List[Any] = [(0, np.zeros(len(inner), np.float32))]
    while waiting:
        node, path = waiting.pop()
        if node not in number:
            leaves.append(node)
            paths.append(path)
            continue
        for child, way in ((no[node], -1), (yes[node], 1)):
            below = path.copy()
            below[number[node]] = way
            waiting.append((int(child), below))
    matrix = np.array(paths, np.float32)
    return np.array(leaves), matrix, (matrix == 1).sum(1).astype(np.float32)


class Forest:
    """Sums trees over one input x [n, features]. Values that several trees need are computed
    once."""

    def __init__(self, plan: Plan, x: str, features: int, reading: Reading) -> None:
        self._plan, self._x, self._features, self._reading = plan, x, features, reading
        self._made: Dict[str, str] = {}
        if reading.tiny_is_zero:
            self._x = plan.op("Mul", x, self._columns("not tiny"))

    def total(self, trees: Sequence[Tree], start: Any) -> str:
        """start [outputs] and what all trees say, [n, outputs]."""
        start = np.asarray(start, np.float64)
        parts = []
        for tree in trees:
            if tree.left[0] < 0:
                start = start + tree.value[0]
            else:
                parts.append(self._tree(tree))
        if not parts:
            parts = [self._zeros()]
        plan = self._plan
        total = parts[0] if len(parts) == 1 else plan.op("Sum", *parts)
        return plan.op("Add", total, plan.constant(start))

    def _zeros(self) -> str:
        """[n, 1] whatever the input holds."""
        plan = self._plan
        first = plan.op("Gather", self._x, plan.constant(np.array([0])), axis=1)
        same = plan.op("Cast", plan.op("Equal", first, first), to=1)
        return plan.op("Mul", same, plan.constant(np.zeros(1), parameter=False))

    def _columns(self, kind: str) -> str:
        """All features in a form that tests need, [n, features]."""
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: str) -> str:
        plan, x = self._plan, self._x
        if kind == "signed":
            # A missing value fails every comparison. So a node that sends it left asks x <= t as
            # "does it go right", -x <= -next(t), which fails for it as well.
            return plan.op("Concat", x, plan.op("Neg", x), axis=1)
        if kind == "signed without zeros":
            gone = plan.op("Div", x, self._columns("not tiny"))  # 0/0, and the rest over 1
            return plan.op("Concat", gone, plan.op("Neg", gone), axis=1)
        if kind == "not tiny":
            bound = plan.constant(np.float32(1e-35), parameter=False)
            tiny = plan.op("LessOrEqual", plan.op("Abs", x), bound)
            return plan.op("Cast", plan.op("Not", tiny), to=1)
        if self._reading.truncates:
            return plan.op("Mul", plan.op("Sign", x), plan.op("Floor", plan.op("Abs", x)))
        return plan.op("Floor", x)

    def _pick(self, kind: str, columns: Any) -> str:
        indices = self._plan.constant(np.asarray(columns, np.int64))
        return self._plan.op("Gather", self._columns(kind), indices, axis=1)

    def _tree(self, tree: Tree) -> str:
        inner = np.flatnonzero(tree.left >= 0)
        in_set = np.array([int(n) in tree.sets for n in inner])
        yes, no = tree.left.copy(), tree.right.copy()
        tests: List[str] = []
        order: List[Any] = []
        for kind, zeros in (("signed", False), ("signed without zeros", True)):
            nodes = inner[~in_set & (tree.zero_missing[inner] == zeros)]
            if len(nodes):
                tests.append(self._numbers(kind, tree, nodes))
                order.append(nodes)
                turned = nodes[tree.missing_left[nodes]]
                yes[turned], no[turned] = tree.right[turned], tree.left[turned]
        nodes = inner[in_set]
        if len(nodes):
            tests.append(self._sets(tree, nodes))
            order.append(nodes)
            if not self._reading.inside_left:
                yes[nodes], no[nodes] = tree.right[nodes], tree.left[nodes]
        taken = tests[0] if len(tests) == 1 else self._plan.op("Concat", *tests, axis=1)
        return leaf_values(self._plan, taken, yes, no, np.concatenate(order), tree.value)

    def _numbers(self, kind: str, tree: Tree, nodes: Any) -> str:
        plan = self._plan
        turned = tree.missing_left[nodes]
        bounds = tree.threshold[nodes].astype(np.float32)
        bounds[turned] = -np.nextafter(bounds[turned], np.float32(np.inf))
        values = self._pick(kind, tree.feature[nodes] + self._features * turned)
        return plan.op("Cast", plan.op("LessOrEqual", values, plan.constant(bounds)), to=1)

    def _sets(self, tree: Tree, nodes: Any) -> str:
        """1 where the value of a node's feature is in its set, or is missing and goes there."""
        plan = self._plan
        pairs = [(i, int(c)) for i, node in enumerate(nodes) for c in tree.sets[int(node)]]
        members = np.zeros((max(1, len(pairs)), len(nodes)), np.float32)
        members[np.arange(len(pairs)), [i for i, _ in pairs]] = 1
        pairs = pairs or [(0, 0)]  # no set has a member, so no member counts
        values = self._pick("whole", [tree.feature[nodes[i]] for i, _ in pairs])
        wanted = plan.constant(np.array([c for _, c in pairs], np.float32))
        same = plan.op("Cast", plan.op("Equal", values, wanted), to=1)
        inside = plan.op("MatMul", same, plan.constant(members, parameter=False))
        follows = ~tree.missing_left[nodes]
        if self._reading.inside_left or not follows.any():
            return inside
        # Only what is missing differs from itself.
        own = self._pick("whole", tree.feature[nodes])
        there = plan.op("Cast", plan.op("Equal", own, own), to=1)
        gone = plan.op("Sub", plan.constant(np.ones(1), parameter=False), there)
        joins = plan.constant(follows.astype(np.float32), parameter=False)
        return plan.op("Add", inside, plan.op("Mul", gone, joins))


def edges(trees: Sequence[Tree], features: int, rows: int = 64, missing: bool = True) -> Any:
    """Rows that decide at the thresholds of trees, float32 [rows, features], for a proof.

    Each value is a threshold of its feature, the float32 next to one, a category or missing.
    """
    random = np.random.default_rng(0)
    found: List[List[float]] = [[0.0, 1.0] for _ in range(features)]
    for tree in trees:
        for node in np.flatnonzero(tree.left >= 0):
            bound = np.float32(tree.threshold[node])
            ways = (np.float32(-np.inf), np.float32(np.inf))
            numbers = [bound, *(np.nextafter(bound, way) for way in ways)]
            kept = tree.sets.get(int(node), numbers)
            found[int(tree.feature[node])] += [float(v) for v in kept if np.isfinite(v)]
    x = np.stack([random.choice(np.array(f, np.float32), rows) for f in found], 1)
    if missing:
        x[random.random(x.shape) < 0.1] = np.nan
    return x
