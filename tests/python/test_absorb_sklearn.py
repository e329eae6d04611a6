"""Estimators of scikit-learn with options that are not defaults, beside the originals."""

import unittest
import unittest.mock
import warnings

import loom
import numpy as np
from loom.bridge import Unabsorbable

try:
    from sklearn import (
        calibration, ensemble, impute, linear_model, naive_bayes, neighbors, preprocessing, svm,
        tree,
    )  # fmt: skip
    from sklearn.pipeline import make_pipeline
except ImportError as error:
    raise unittest.SkipTest(f"scikit-learn is not installed: {error}") from error

warnings.simplefilter("ignore")
RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(90, 4)).astype(np.float32) * [1, 3, 0.5, 2] + [0, 5, -1, 0]
X = X.astype(np.float32)
TWO = (X[:, 0] + X[:, 3] > 0).astype(int)
THREE = TWO + (X[:, 1] > 6)
Y = X[:, 0] * X[:, 3] + np.sin(X[:, 1])
HOLES = np.where(RANDOM.random(X.shape) < 0.2, np.float32(np.nan), X)
LEVELS = RANDOM.integers(0, 5, X.shape).astype(np.float32)
FRESH = np.concatenate([X, X * 1.3 + 0.1]).astype(np.float32)


def transformers():
    """(estimator, training rows, rows to compare)."""
    bins = preprocessing.KBinsDiscretizer
    unseen = np.concatenate([LEVELS, LEVELS + 3])
    hot, ordinal = preprocessing.OneHotEncoder, preprocessing.OrdinalEncoder
    with_gaps = np.where(RANDOM.random(LEVELS.shape) < 0.1, np.float32(np.nan), LEVELS)
    return [
        (impute.SimpleImputer(), HOLES, HOLES),
        (impute.SimpleImputer(strategy="median", add_indicator=True), HOLES, HOLES),
        (impute.SimpleImputer(strategy="most_frequent", missing_values=2), LEVELS, LEVELS),
        (impute.SimpleImputer(strategy="constant", fill_value=-7), HOLES, HOLES),
        (impute.SimpleImputer(), np.where(np.arange(4) == 1, np.nan, HOLES), HOLES),
        (impute.MissingIndicator(), HOLES, HOLES),
        (hot(), LEVELS, LEVELS),
        (hot(drop="first"), LEVELS, LEVELS),
        (hot(drop="if_binary", handle_unknown="ignore"), LEVELS, unseen),
        (hot(handle_unknown="ignore", sparse_output=False), with_gaps, with_gaps),
        (hot(min_frequency=17, handle_unknown="infrequent_if_exist"), LEVELS, unseen),
        (hot(max_categories=3), LEVELS, LEVELS),
        (ordinal(), LEVELS, LEVELS),
        (ordinal(handle_unknown="use_encoded_value", unknown_value=-1), LEVELS, unseen),
        (ordinal(encoded_missing_value=-2), with_gaps, with_gaps),
        (ordinal(min_frequency=17), LEVELS, LEVELS),
        (bins(4, encode="ordinal", strategy="uniform"), X, FRESH),
        (bins(5, encode="onehot-dense", strategy="quantile"), X, FRESH),
        (bins(3, encode="onehot", strategy="kmeans"), X, FRESH),
        (preprocessing.PolynomialFeatures(), X, FRESH),
        (preprocessing.PolynomialFeatures(3, interaction_only=True), X, FRESH),
        (preprocessing.PolynomialFeatures((2, 3), include_bias=False), X, FRESH),
    ]


def machines():
    """(estimator, targets)."""
    near, near_numbers = neighbors.KNeighborsClassifier, neighbors.KNeighborsRegressor
    return [
        (svm.SVC(), TWO),
        (svm.SVC(kernel="linear", C=3, class_weight="balanced"), THREE),
        (svm.SVC(kernel="poly", degree=2, coef0=1, gamma=0.1), THREE),
        (svm.SVC(kernel="sigmoid", gamma=0.05, decision_function_shape="ovo"), THREE),
        (svm.SVC(gamma="auto", decision_function_shape="ovr"), THREE),
        (svm.NuSVC(nu=0.2), THREE),
        (svm.SVR(), Y),
        (svm.SVR(kernel="poly", degree=3, coef0=0.5, gamma=0.05, epsilon=0.2), Y),
        (svm.NuSVR(kernel="linear", C=0.5), Y),
        (svm.OneClassSVM(nu=0.3), None),
        (near(), THREE),
        (near(3, weights="distance"), THREE),
        (near(7, p=1), TWO),
        (near(4, metric="chebyshev", weights="distance"), THREE),
        (near_numbers(2, weights="distance"), Y),
        (near_numbers(6, p=3), np.stack([Y, -Y], 1)),
    ]


def composed():
    logistic = linear_model.LogisticRegression
    calibrated, stack = calibration.CalibratedClassifierCV, ensemble.StackingClassifier
    forest = ensemble.RandomForestClassifier(5, max_depth=3, random_state=0)
    boosted = ensemble.GradientBoostingClassifier(n_estimators=4, random_state=0)
    bayes, ridge = naive_bayes.GaussianNB(), linear_model.RidgeClassifier()
    votes = [("a", logistic()), ("b", forest), ("c", ridge)]
    scaled = make_pipeline(preprocessing.StandardScaler(), svm.SVC())
    return [
        (calibrated(svm.LinearSVC(), cv=3), TWO),
        (calibrated(svm.SVC(), cv=3, method="isotonic"), THREE),
        (calibrated(bayes, cv=2, method="isotonic"), TWO),
        (calibrated(logistic(), cv=3), THREE),
        (calibrated(boosted, cv=2), TWO),
        (calibrated(forest, cv=2, ensemble=False), THREE),
        (calibrated(scaled, cv=2), THREE),
        (ensemble.VotingClassifier(votes, weights=[1, 2, 2]), TWO),
        (ensemble.VotingClassifier(votes), THREE),
        (ensemble.VotingClassifier(votes[:2], voting="soft", weights=[3, 1]), THREE),
        (stack(votes[:2], cv=2), TWO),
        (stack([*votes, ("d", svm.SVC())], logistic(C=0.1), cv=2, passthrough=True), THREE),
        (stack([("a", logistic()), ("b", boosted)], cv=2, stack_method="decision_function"), TWO),
        (ensemble.StackingRegressor(
            [("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))],
            svm.SVR(), cv=2, passthrough=True), Y),
    ]  # fmt: skip


class AbsorbedEstimators(unittest.TestCase):
    def compare(self, fitted, rows, tolerance=2e-5):
        from loom.bridge.sklearn import native

        net = loom.absorb(fitted, rows, fresh_process=False, abs_tol=tolerance, rel_tol=2e-4)
        self.assertTrue(net.proof.passed)
        half = np.ascontiguousarray(rows[::2])  # another batch than the example
        np.testing.assert_allclose(
            net.predict(half), native(fitted, half), atol=tolerance, rtol=2e-4
        )
        return net

    def test_transformers_give_the_rows_of_the_originals(self):
        for model, train, rows in transformers():
            with self.subTest(model=str(model)):
                self.compare(model.fit(train), rows.astype(np.float32))

    def test_machines_and_neighbors_predict_as_the_originals(self):
        for model, target in machines():
            with self.subTest(model=str(model)):
                fitted = model.fit(X) if target is None else model.fit(X, target)
                # Sums of 90 kernels cancel: the engine has float32, the original float64.
                self.compare(fitted, FRESH, 5e-4 if hasattr(model, "dual_coef_") else 2e-5)

    def test_votes_stacks_and_calibrated_classifiers_predict_as_the_originals(self):
        for model, target in composed():
            with self.subTest(model=str(model)):
                self.compare(model.fit(X, target), FRESH)

    def test_a_pipeline_of_preparation_and_neighbors(self):
        model = make_pipeline(
            impute.SimpleImputer(add_indicator=True),
            preprocessing.PolynomialFeatures(2, include_bias=False),
            preprocessing.StandardScaler(),
            neighbors.KNeighborsClassifier(4, weights="distance"),
        )
        self.compare(model.fit(HOLES, THREE), HOLES)

    def test_a_wrong_rule_turns_its_proof_red(self):
        from loom.bridge import _sklearn_rules as rules

        for name, model, rows in (
            ("SimpleImputer", impute.SimpleImputer().fit(HOLES), HOLES),
            ("OneHotEncoder", preprocessing.OneHotEncoder().fit(LEVELS), LEVELS),
            ("SVR", svm.SVR().fit(X, Y), X),
            ("KNeighborsRegressor", neighbors.KNeighborsRegressor().fit(X, Y), X),
        ):
            kept = rules._RULES[name]

            def wrong(plan, m, x, kept=kept):
                return plan.op("Mul", kept(plan, m, x), plan.constant(1.01))

            with self.subTest(rule=name), unittest.mock.patch.dict(rules._RULES, {name: wrong}):
                with self.assertRaises(ArithmeticError):
                    loom.absorb(model, rows, fresh_process=False)

    def test_what_has_no_rule_is_named(self):
        near, hot = neighbors.KNeighborsClassifier, preprocessing.OneHotEncoder
        for model, target, what in (
            (near(weights=lambda d: 1 / (1 + d)), TWO, "weights"),
            (near(metric="cosine"), TWO, "metric cosine"),
            (svm.SVC(probability=True), THREE, "probability"),
        ):
            with self.subTest(what=what), self.assertRaisesRegex(Unabsorbable, what):
                loom.absorb(model.fit(X, target), X)
        texts = hot().fit(np.array([["a"], ["b"]], dtype=object))
        with self.assertRaisesRegex(Unabsorbable, "encode texts"):
            loom.absorb(texts, np.zeros((2, 1), np.float32))


if __name__ == "__main__":
    unittest.main()
