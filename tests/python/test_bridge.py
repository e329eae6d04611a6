"""Models of scikit-learn (and of PyTorch, where it is installed) absorbed with their proofs."""

import copy
import importlib.util
import unittest
import warnings

import loom
import numpy as np
from loom.bridge import Plan, Unabsorbable

warnings.simplefilter("ignore")

try:
    import torch
except ImportError:
    torch = None

X = np.random.default_rng(3).normal(size=(60, 5)).astype(np.float32)
CLASSES = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3)


@unittest.skipIf(importlib.util.find_spec("sklearn") is None, "scikit-learn is not installed")
class Sklearn(unittest.TestCase):
    def absorbed(self, model, target=None):
        fitted = model.fit(X) if target is None else model.fit(X, target)
        net = loom.absorb(fitted, X, fresh_process=False)
        self.assertTrue(net.proof.passed)
        return net, fitted

    def test_a_pipeline_says_what_it_said_for_any_batch(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        net, model = self.absorbed(make_pipeline(StandardScaler(), LogisticRegression()), CLASSES)
        for rows in (1, 3, 60):
            np.testing.assert_allclose(
                net.predict(X[:rows]), model.predict_proba(X[:rows]), atol=1e-6
            )

    def test_trees_decide_exactly_also_at_their_thresholds(self):
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.tree import DecisionTreeRegressor

        net, tree = self.absorbed(DecisionTreeRegressor(random_state=0), X[:, 0] * X[:, 1])
        edges = np.repeat(X[:1], 40, axis=0)
        inner = np.flatnonzero(tree.tree_.feature >= 0)[:20]
        for i, node in enumerate(inner):
            edge = np.float32(tree.tree_.threshold[node])
            edges[2 * i : 2 * i + 2, tree.tree_.feature[node]] = edge, np.nextafter(
                edge, np.float32(9)
            )
        np.testing.assert_array_equal(
            net.predict(edges)[:, 0], tree.predict(edges).astype(np.float32)
        )
        net, forest = self.absorbed(RandomForestClassifier(7, random_state=0), CLASSES)
        np.testing.assert_allclose(net.predict(X), forest.predict_proba(X), atol=1e-6)

    def test_boosting_over_histograms_sends_missing_values_its_way(self):
        from sklearn.ensemble import HistGradientBoostingClassifier as Classifier
        from sklearn.ensemble import HistGradientBoostingRegressor as Regressor

        holes = X.copy()
        holes[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
        for model, target in [
            (Classifier(max_iter=6, min_samples_leaf=3), CLASSES),
            (Classifier(max_iter=6, min_samples_leaf=3), CLASSES > 0),
            (Regressor(max_iter=6, min_samples_leaf=3), X[:, 0]),
            (Regressor(loss="poisson", max_iter=6, min_samples_leaf=3), np.exp(X[:, 0])),
        ]:
            net = loom.absorb(model.fit(holes, target), holes, fresh_process=False)
            self.assertTrue(net.proof.passed)
        model = Classifier(max_iter=2, categorical_features=[4]).fit(np.abs(X.round()), CLASSES)
        with self.assertRaisesRegex(Unabsorbable, "categorical_features"):
            loom.absorb(model, X)

    def test_a_saved_model_computes_the_bits_of_the_absorbed_one(self):
        from sklearn.preprocessing import MinMaxScaler

        net = loom.absorb(MinMaxScaler().fit(X), X)  # a fresh process is asked as well
        again = loom.Network.load(net.save_bytes())
        np.testing.assert_array_equal(again.predict(X), net.predict(X))
        self.assertEqual(net.proof.rungs, ("native", "engine", "file", "wheel"))
        self.assertEqual(again.proof.report, net.proof.report)

    def test_an_absorbed_perceptron_learns_on(self):
        from sklearn.neural_network import MLPRegressor

        target = X[:, 0] * X[:, 1]
        net, model = self.absorbed(
            MLPRegressor(hidden_layer_sizes=(16,), max_iter=20, random_state=0), target
        )
        before = float(((model.predict(X) - target) ** 2).mean())
        net.fit(
            X,
            target.reshape(-1, 1).astype(np.float32),
            loss="mse",
            epochs=60,
            optimizer=loom.Adam(0.01),
        )
        after = float(((net.predict(X)[:, 0] - target) ** 2).mean())
        self.assertLess(after, before / 2)

    def test_random_pipelines_agree(self):
        from sklearn import decomposition as dc
        from sklearn import ensemble as en
        from sklearn import linear_model as lm
        from sklearn import preprocessing as pp
        from sklearn import tree
        from sklearn.pipeline import make_pipeline

        rng = np.random.default_rng(11)
        for case in range(25):
            n, width = int(rng.integers(12, 60)), int(rng.integers(2, 9))
            x = rng.normal(size=(n, width)).astype(np.float32) * 10 ** rng.uniform(-1, 1)
            target = rng.integers(0, int(rng.integers(2, 5)), n)
            target[:2] = 0, 1
            steps = [
                pp.StandardScaler(),
                pp.RobustScaler(),
                pp.MaxAbsScaler(),
                pp.Normalizer(),
                dc.PCA(int(rng.integers(1, width + 1))),
            ]
            rng.shuffle(steps)
            last = [
                lm.LogisticRegression(),
                tree.DecisionTreeClassifier(random_state=case),
                en.ExtraTreesClassifier(4, random_state=case),
                lm.RidgeClassifier(),
                en.GradientBoostingClassifier(n_estimators=4, random_state=case),
            ][case % 5]
            # Trees compare with thresholds: what is a rounding before them decides otherwise.
            before = [] if case % 5 in (1, 2, 4) else steps[: int(rng.integers(0, 4))]
            model = make_pipeline(*before, last).fit(x, target)
            with self.subTest(case=case, model=str(model)):
                net = loom.absorb(model, x, fresh_process=False, abs_tol=2e-5)
                self.assertTrue(net.proof.passed)

    def test_all_that_has_no_rule_is_told_at_once(self):
        from sklearn.neighbors import RadiusNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import SplineTransformer

        model = make_pipeline(SplineTransformer(), RadiusNeighborsClassifier(99)).fit(X, CLASSES)
        plan = loom.absorb(model, X, plan_only=True)
        self.assertIsInstance(plan, Plan)
        self.assertEqual(
            [p.what for p in plan.problems], ["SplineTransformer", "RadiusNeighborsClassifier"]
        )
        with self.assertRaises(Unabsorbable) as raised:
            loom.absorb(model, X)
        self.assertEqual(len(raised.exception.problems), 2)
        self.assertIn("radiusneighborsclassifier", str(raised.exception))

    def test_bad_calls_say_what_to_give(self):
        from sklearn.linear_model import Ridge

        with self.assertRaisesRegex(loom.UnsupportedError, "not fitted"):
            loom.absorb(Ridge())
        with self.assertRaisesRegex(loom.InvalidArgumentError, r"\[n, 5\]"):
            loom.absorb(Ridge().fit(X, X[:, 0]), X[:, :3])
        with self.assertRaisesRegex(loom.InvalidArgumentError, "builtins.dict"):
            loom.absorb({})

    def test_a_wrong_rule_turns_its_proof_red(self):
        from loom.bridge import _sklearn_rules as rules
        from sklearn.linear_model import LinearRegression
        from sklearn.neural_network import MLPClassifier
        from sklearn.preprocessing import StandardScaler

        def mutated(name, change, model, target=None):
            kept = rules._RULES[name]
            rules._RULES[name] = lambda plan, m, x: change(plan, m, x, kept)
            try:
                with self.assertRaises(ArithmeticError):
                    loom.absorb(model.fit(X, target), X, fresh_process=False)
            finally:
                rules._RULES[name] = kept

        mutated(
            "LinearRegression",
            lambda p, m, x, r: p.dense(x, np.atleast_2d(m.coef_)),
            LinearRegression(),
            X[:, 0] + 2,
        )  # a bias that is dropped
        mutated(
            "StandardScaler",
            lambda p, m, x, r: p.op("Mul", r(p, m, x), p.constant(1.01)),
            StandardScaler(),
        )
        mutated(
            "MLPClassifier",
            lambda p, m, x, r: p.op("Softmax", r(p, m, x), axis=1),
            MLPClassifier((5,), max_iter=20),
            CLASSES,
        )


@unittest.skipUnless(torch is not None, "PyTorch is not installed")
class Torch(unittest.TestCase):
    def test_what_is_executed_counts_and_modes_are_restored(self):
        from torch import nn

        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.l, self.d = nn.Linear(5, 5), nn.Dropout(0.5)
                self.unused = nn.Linear(5, 5)

            def forward(self, x):
                return self.l(self.d(torch.tanh(self.l(x)))) + x

        module = Twice().train()
        net = loom.absorb(module, (torch.from_numpy(X),), fresh_process=False)
        self.assertTrue(module.training)
        self.assertEqual(net.predict(X[:1]).shape, (1, 5))
        self.assertEqual(net.plan.parameters, 30)  # the tied layer once, the unused one never

    def test_layers_that_begin_as_copies_are_two_and_one_that_is_called_twice_is_one(self):
        from torch import nn

        class Both(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Sequential(nn.Linear(5, 5), nn.Tanh())
                self.b = copy.deepcopy(self.a)

            def forward(self, x):
                return self.b(self.a(self.a(x)))

        net = loom.absorb(Both(), (torch.from_numpy(X),), fresh_process=False)
        self.assertEqual(net.plan.parameters, 60)
        self.assertEqual(net.info["parameters"], 60)

    def test_each_broken_rule_turns_its_proof_red(self):
        from loom.bridge import torch_ops, torch_recurrences  # noqa: F401  the rules
        from loom.bridge.torch_graph import RULES, Graph
        from torch import nn

        torch.manual_seed(1)
        x, rows = torch.randn(3, 5) * 3, torch.randn(2, 4, 6)
        pictures = torch.randn(2, 4, 7, 6)
        gates = torch_recurrences._GATES
        read = Graph.array

        def turned(self, node):  # a square weight is transposed, which no shape tells
            array = read(self, node)
            square = array is not None and array.ndim == 2 and len(set(array.shape)) == 1
            return array.T if square else array

        def without(self, node):  # every bias and every row of statistics is forgotten
            array = read(self, node)
            return array * 0 if array is not None and array.ndim == 1 else array

        def swapped(self, node):  # the rows of queries and of keys
            array = read(self, node)
            if array is None or array.ndim != 2 or array.shape[0] != 3 * array.shape[1]:
                return array
            return np.concatenate([array[6:12], array[:6], array[12:]])

        def flipped(self, node):
            array = read(self, node)
            return array[..., ::-1].copy() if array is not None and array.ndim == 4 else array

        class First(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.r = kind(6, 6, batch_first=True)

            def forward(self, x):
                return self.r(x)[0]

        attention = nn.TransformerEncoderLayer(6, 2, 9, 0.0, batch_first=True)
        eps = lambda g, x, shape, w, b, eps=1e-5, c=True: norm(
            g, x, shape, w, b, 1e-6
        )  # noqa: E731
        exact = lambda g, x, approximate="none": gelu(g, x, "tanh")  # noqa: E731
        norm, gelu = RULES["aten.layer_norm.default"], RULES["aten.gelu.default"]
        cases = [
            ("transposed", nn.Linear(5, 5), x, (Graph, "array", turned)),
            ("bias dropped", nn.Linear(5, 5), x, (Graph, "array", without)),
            ("kernel flipped", nn.Conv2d(4, 3, (3, 2)), pictures, (Graph, "array", flipped)),
            ("queries and keys", attention, rows, (Graph, "array", swapped)),
            ("epsilon", nn.LayerNorm(5, eps=0.1), x, (RULES, "aten.layer_norm.default", eps)),
            ("kind of GELU", nn.GELU(), x, (RULES, "aten.gelu.default", exact)),
            ("gates of LSTM", First(nn.LSTM), rows, (gates, "LSTM", [0, 1, 2, 3])),
            ("gates of GRU", First(nn.GRU), rows, (gates, "GRU", [0, 1, 2])),
        ]
        for name, module, given, (where, what, broken) in cases:
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.add_(torch.randn(parameter.shape) * 0.3)
            table = isinstance(where, dict)
            kept = where[what] if table else getattr(where, what)
            put = where.__setitem__ if table else lambda k, v, w=where: setattr(w, k, v)
            absorb = lambda: loom.absorb(module, (given,), fresh_process=False)  # noqa: B023, E731
            with self.subTest(name):
                self.assertTrue(absorb().proof.passed)
                put(what, broken)
                try:
                    # A copy of a parameter does not train, so its count differs first.
                    with self.assertRaises((ArithmeticError, loom.UnsupportedError)):
                        absorb()
                finally:
                    put(what, kept)

    def test_an_operation_without_a_rule_is_told_with_its_module(self):
        from torch import nn

        class Odd(nn.Module):
            def forward(self, x):
                return torch.fft.rfft(x).real

        model = nn.Sequential(nn.Linear(5, 8), Odd())
        plan = loom.absorb(model, (torch.from_numpy(X),), plan_only=True)
        self.assertEqual(plan.problems[0].where, "1")

    def test_orders_and_points_that_have_no_form_are_refused_with_a_reason(self):
        from torch import nn

        class Called(nn.Module):
            def __init__(self, function):
                super().__init__()
                self.function = function

            def forward(self, x):
                return self.function(x)

        def warped(x, **options):
            return nn.functional.grid_sample(x, x[..., :2], align_corners=False, **options)

        x, image = torch.randn(3, 6), torch.randn(3, 4, 5, 6)
        forms = {
            "1100 values to sort": (lambda x: x.sort()[0], torch.randn(3, 1100)),
            "written twice": (lambda x: x.scatter(1, x.argmax(1)[:, None].repeat(1, 6), x), x),
            "all axes, the batch": (lambda x: x * x.argmax(), x),
            "bicubic": (lambda x: warped(x, mode="bicubic"), image),
            "reflection": (lambda x: warped(x, padding_mode="reflection"), image),
            "nearest": (lambda x: warped(x, mode="nearest"), image),
        }
        for reason, (function, given) in forms.items():
            with self.subTest(reason):
                plan = loom.absorb(Called(function), (given,), plan_only=True)
                self.assertIn(reason, plan.problems[0].why)


if __name__ == "__main__":
    unittest.main()
