"""Models of LightGBM and XGBoost absorbed with their proofs: objectives, missing values, sets of
categories, files, and random models against what the libraries say at every threshold.

LOOM_BOOSTING_CASES=2000 makes more random models than the few of CI.
"""

import importlib.util
import os
import unittest
import warnings
from unittest import mock

import loom
import numpy as np
from loom.bridge import Unabsorbable, trees
from support import Scratch

warnings.simplefilter("ignore")


def installed(name):
    return importlib.util.find_spec(name) is not None


needs_lightgbm = unittest.skipUnless(installed("lightgbm"), "lightgbm is not installed")
needs_xgboost = unittest.skipUnless(installed("xgboost"), "xgboost is not installed")
CASES = int(os.environ.get("LOOM_BOOSTING_CASES", 40))
ROWS = 240


def table(random, width=5, categories=True, missing=True):
    """Inputs [n, width], whose last column is a category where that is asked for, and a target."""
    x = random.normal(size=(ROWS, width)).astype(np.float32)
    x[:, 0] = np.round(x[:, 0] * 2) / 2  # with ties, and many zeros
    target = x[:, 0] * x[:, 1] + np.sin(3 * x[:, 2])
    if categories:
        x[:, -1] = random.integers(0, 40, ROWS)
        target = target + np.where(x[:, -1] % 3 == 1, 1.5, 0)
    if missing:
        x[random.random(x.shape) < 0.15] = np.nan
    return x, target


def classes(target, count):
    return np.searchsorted(np.quantile(target, np.arange(1, count) / count), target)


X, Y = table(np.random.default_rng(4))
Y3 = classes(Y, 3)
POSITIVE = np.exp(Y / 2)


class Boosting(Scratch):
    def holds(self, model, *inputs, **options):
        """Absorbed at the thresholds of its trees, and for what it was fitted with."""
        for given in (None, *inputs):
            net = loom.absorb(model, given, fresh_process=False, **options)
            self.assertTrue(net.proof.passed)
        return net

    def turns_red(self, model, rules, name, change):
        """A rule that is changed is found by the proof."""
        kept = getattr(rules, name)
        with mock.patch.object(rules, name, lambda *given: change(kept, *given)):
            with self.assertRaises(ArithmeticError):
                loom.absorb(model, X, fresh_process=False)


def turned(kept, *given):
    tree = kept(*given)
    return tree._replace(missing_left=~tree.missing_left)


@needs_lightgbm
class LightGbm(Boosting):
    def trained(self, target, x=X, rounds=6, categories=(4,), **parameters):
        import lightgbm

        data = lightgbm.Dataset(x, target, categorical_feature=list(categories))
        small = {"verbose": -1, "num_leaves": 9, "min_data_per_group": 4, "cat_smooth": 1}
        return lightgbm.train({**small, **parameters}, data, rounds)

    def test_every_objective(self):
        share = 1 / (1 + np.exp(-Y))
        for objective, target, more in [
            ("regression", Y, {}),
            ("regression", POSITIVE, {"reg_sqrt": True}),
            *((o, Y, {}) for o in ("regression_l1", "huber", "fair", "quantile", "mape")),
            *((o, POSITIVE, {}) for o in ("poisson", "gamma", "tweedie")),
            ("binary", Y > 0, {}),
            ("binary", Y > 0, {"sigmoid": 0.7}),
            ("multiclass", Y3, {"num_class": 3}),
            ("multiclassova", Y3, {"num_class": 3, "sigmoid": 1.5}),
            ("cross_entropy", share, {}),
            ("cross_entropy_lambda", share, {}),
        ]:
            with self.subTest(objective=objective, **more):
                self.holds(self.trained(target, objective=objective, **more), X)

    def test_every_boosting_and_what_counts_as_missing(self):
        bagged = {"bagging_freq": 1, "bagging_fraction": 0.6}
        for more in [
            {"boosting": "dart", "drop_rate": 0.5},
            {"boosting": "rf", **bagged},
            {"zero_as_missing": True},
            {"use_missing": False},
            {"max_cat_to_onehot": 64},
            {"min_data_in_leaf": ROWS},  # trees of one leaf
        ]:
            with self.subTest(**more):
                self.holds(self.trained(Y, **more), X)
                self.holds(self.trained(Y3, objective="multiclass", num_class=3, **more), X)

    def test_estimators_give_what_they_predict(self):
        import lightgbm

        small = {"n_estimators": 5, "num_leaves": 7, "verbose": -1}
        for model, target, width in [
            (lightgbm.LGBMClassifier(**small), Y > 0, 2),
            (lightgbm.LGBMClassifier(**small), np.array(["a", "b", "c"])[Y3], 3),
            (lightgbm.LGBMRegressor(objective="poisson", **small), POSITIVE, 1),
        ]:
            net = self.holds(model.fit(X, target), X)
            self.assertEqual(net.predict(X[:3]).shape, (3, width))

    def test_early_stopping_leaves_the_best_rounds(self):
        import lightgbm

        model = lightgbm.LGBMRegressor(n_estimators=60, learning_rate=0.9, verbose=-1)
        stop = lightgbm.early_stopping(2, verbose=False)
        model.fit(X[:120], Y[:120], eval_set=[(X[120:], Y[120:])], callbacks=[stop])
        self.assertLess(model.best_iteration_, 60)
        self.holds(model, X)

    def test_a_file_is_absorbed_by_its_path(self):
        path = self.folder / "model.txt"
        model = self.trained(Y > 0, objective="binary")
        model.save_model(path)
        net = loom.absorb(path, X)
        self.assertEqual(net.proof.rungs, ("native", "engine", "file", "wheel"))
        np.testing.assert_allclose(net.predict(X)[:, 0], model.predict(X), atol=1e-6)
        path.write_bytes(path.read_bytes()[:300])
        with self.assertRaisesRegex(loom.BadFileError, "LightGBM cannot read it"):
            loom.absorb(path)

    def test_what_has_no_rule_is_refused_by_name(self):
        linear = self.trained(Y, linear_tree=True)
        with self.assertRaisesRegex(Unabsorbable, "linear_tree"):
            loom.absorb(linear, X)

    def test_a_changed_rule_turns_the_proof_red(self):
        from loom.bridge import lightgbm as rules

        model = self.trained(Y)
        self.assertRegex(model.model_to_string(), "num_cat=[1-9]")
        self.turns_red(model, rules, "_tree", turned)
        self.turns_red(model, rules, "_sets", lambda kept, *given: {})
        self.turns_red(model, rules, "floor32", lambda kept, t: kept(t) + np.float32(0.2))
        model = self.trained(Y > 0, objective="binary")
        self.turns_red(model, rules, "_link", lambda kept, plan, words, raw: raw)

    def test_random_models_agree_at_every_threshold(self):
        random = np.random.default_rng(17)
        for case in range(CASES):
            width = int(random.integers(2, 7))
            x, y = table(random, max(width, 3), bool(case % 2), bool(case % 3))
            count = int(random.integers(2, 5))
            more = [
                {"objective": "regression"},
                {"objective": "binary"},
                {"objective": "multiclass", "num_class": count},
            ][case % 3]
            target = [y, y > 0, classes(y, count)][case % 3]
            how = {
                "num_leaves": int(random.integers(2, 40)),
                "min_data_in_leaf": int(random.integers(1, 20)),
                "zero_as_missing": bool(random.random() < 0.3),
                "use_missing": bool(random.random() < 0.8),
                "max_cat_to_onehot": int(random.choice([2, 50])),
                "boosting": str(random.choice(["gbdt", "dart"])),
            }
            kinds = (x.shape[1] - 1,) if case % 2 else ()
            with self.subTest(case=case, **how):
                rounds = int(random.integers(1, 9))
                self.holds(self.trained(target, x, rounds, kinds, **more, **how), x, abs_tol=2e-5)


@needs_xgboost
class XgBoost(Boosting):
    def trained(self, target, x=X, rounds=6, categories=(4,), groups=None, **parameters):
        import xgboost

        types = ["c" if i in categories else "q" for i in range(x.shape[1])]
        data = xgboost.DMatrix(x, target, feature_types=types, enable_categorical=True)
        if groups:
            data.set_group(groups)
        return xgboost.train({"max_depth": 4, **parameters}, data, rounds)

    def test_every_objective(self):
        share = 1 / (1 + np.exp(-Y))
        for objective, target, more in [
            ("reg:squarederror", Y, {}),
            ("reg:absoluteerror", Y, {}),
            ("reg:pseudohubererror", Y, {}),
            ("reg:squaredlogerror", POSITIVE, {}),
            ("reg:quantileerror", Y, {"quantile_alpha": 0.3}),
            *((o, POSITIVE, {}) for o in ("count:poisson", "reg:gamma", "reg:tweedie")),
            ("reg:logistic", share, {"base_score": 0.3}),
            *((f"binary:{o}", Y > 0, {}) for o in ("logistic", "logitraw", "hinge")),
            *((f"multi:{o}", Y3, {"num_class": 3}) for o in ("softprob", "softmax")),
            ("survival:cox", POSITIVE, {}),
            ("rank:ndcg", Y3, {"groups": [ROWS]}),
        ]:
            with self.subTest(objective=objective):
                self.holds(self.trained(target, objective=objective, **more), X)

    def test_every_booster_and_several_targets(self):
        both = np.stack([Y, X[:, 1]], 1)
        both[np.isnan(both)] = 0
        for target, more in [
            (Y, {"booster": "dart", "rate_drop": 0.5}),
            (Y3, {"booster": "gblinear", "objective": "multi:softprob", "num_class": 3}),
            (Y, {"num_parallel_tree": 3, "subsample": 0.5}),
            (Y, {"max_cat_to_onehot": 64}),
            (Y, {"min_child_weight": 1e6}),  # trees of one leaf
            (both, {}),
        ]:
            with self.subTest(**more):
                if more.get("booster") == "gblinear":
                    plain = np.nan_to_num(X)  # linear models take no missing values
                    net = self.trained(target, plain, categories=(), **more)
                    self.assertTrue(loom.absorb(net, plain, fresh_process=False).proof.passed)
                else:
                    self.holds(self.trained(target, **more), X)

    def test_estimators_give_what_they_predict(self):
        import xgboost

        small = {"n_estimators": 5, "max_depth": 3}
        zeros = np.nan_to_num(X)
        for model, x, target, width in [
            (xgboost.XGBClassifier(**small), X, Y > 0, 2),
            (xgboost.XGBClassifier(**small), X, Y3, 3),
            (xgboost.XGBRegressor(objective="count:poisson", **small), X, POSITIVE, 1),
            (xgboost.XGBRegressor(missing=0.0, **small), zeros, Y, 1),
            (xgboost.XGBRFRegressor(**small), X, Y, 1),
        ]:
            net = self.holds(model.fit(x, target), x)
            self.assertEqual(net.predict(x[:3]).shape, (3, width))

    def test_early_stopping_leaves_the_best_rounds(self):
        import xgboost

        model = xgboost.XGBRegressor(n_estimators=60, learning_rate=0.9, early_stopping_rounds=2)
        model.fit(X[:120], Y[:120], eval_set=[(X[120:], Y[120:])], verbose=False)
        self.assertLess(model.best_iteration, 58)
        self.holds(model, X)

    def test_files_are_absorbed_by_their_paths(self):
        model = self.trained(Y3, objective="multi:softprob", num_class=3)
        for name in ("model.json", "model.ubj"):
            path = self.folder / name
            model.save_model(path)
            self.assertTrue(self.holds(path, X).proof.passed)
            path.write_bytes(path.read_bytes()[:300])
            with self.assertRaisesRegex(loom.BadFileError, "XGBoost cannot read it"):
                loom.absorb(path)

    def test_what_has_no_rule_is_refused_by_name(self):
        both = np.nan_to_num(np.stack([Y, X[:, 1]], 1))
        one = {"multi_strategy": "multi_output_tree", "tree_method": "hist"}
        model = self.trained(both, categories=(), **one)
        with self.assertRaisesRegex(Unabsorbable, "multi_output_tree"):
            loom.absorb(model, X)

    def test_a_changed_rule_turns_the_proof_red(self):
        from loom.bridge import xgboost as rules

        model = self.trained(Y)
        self.turns_red(model, rules, "_tree", turned)
        self.turns_red(model, rules, "_tree", lambda kept, *given: at_most(kept(*given)))
        self.turns_red(model, rules, "_tree", lambda kept, *given: kept(*given)._replace(sets={}))
        self.turns_red(model, rules, "_start", lambda kept, objective, score: 0 * score)
        model = self.trained(Y > 0, objective="binary:logistic")
        self.turns_red(model, rules, "_link", lambda kept, plan, words, raw: raw)

    def test_random_models_agree_at_every_threshold(self):
        random = np.random.default_rng(23)
        for case in range(CASES):
            width = int(random.integers(2, 7))
            x, y = table(random, max(width, 3), bool(case % 2), bool(case % 3))
            count = int(random.integers(2, 5))
            more = [
                {"objective": "reg:squarederror"},
                {"objective": "binary:logistic"},
                {"objective": "multi:softprob", "num_class": count},
            ][case % 3]
            target = [y, y > 0, classes(y, count)][case % 3]
            how = {
                "max_depth": int(random.integers(1, 8)),
                "min_child_weight": float(random.choice([0, 1, 5])),
                "max_cat_to_onehot": int(random.choice([2, 50])),
                "booster": str(random.choice(["gbtree", "dart"])),
                "tree_method": str(random.choice(["hist", "approx"])),
                "num_parallel_tree": int(random.choice([1, 2])),
            }
            kinds = (x.shape[1] - 1,) if case % 2 else ()
            with self.subTest(case=case, **how):
                rounds = int(random.integers(1, 9))
                self.holds(self.trained(target, x, rounds, kinds, **more, **how), x, abs_tol=2e-5)


def at_most(tree):
    """x <= t in place of x < t."""
    return tree._replace(threshold=np.nextafter(tree.threshold, np.float32(np.inf)))


class Files(Scratch):
    def test_other_files_are_refused_in_a_sentence(self):
        path = self.folder / "x.bin"
        with self.assertRaisesRegex(loom.NotFoundError, "x.bin"):
            loom.absorb(path)
        path.write_bytes(b"GGUF....")
        with self.assertRaisesRegex(loom.BadFileError, "no model of LightGBM"):
            loom.absorb(str(path))

    def test_a_library_that_is_not_there_is_said(self):
        path = self.folder / "model.txt"
        path.write_text("tree\nversion=v4\n")
        with mock.patch.dict("sys.modules", {"lightgbm": None}):
            with self.assertRaisesRegex(loom.InvalidArgumentError, "pip install lightgbm"):
                loom.absorb(path)


class Thresholds(unittest.TestCase):
    def test_the_float32_below_decides_as_the_exact_number_does(self):
        random = np.random.default_rng(2)
        exact = random.normal(size=500) * 10.0 ** random.integers(-40, 39, 500)
        exact = np.concatenate([exact, [0.0, 1e300, -1e300, 0.1, np.float32(0.1)]])
        found = trees.floor32(exact)
        for way in (-np.inf, np.inf):
            with np.errstate(over="ignore"):
                x = np.nextafter(found, np.float32(way))
            np.testing.assert_array_equal(x.astype(np.float64) <= exact, x <= found)
        self.assertTrue((found.astype(np.float64) <= exact).all())


if __name__ == "__main__":
    unittest.main()
