"""The estimators, by scikit-learn's own checks and beside its own estimators."""

import pickle
import unittest
import warnings

import numpy as np
from support import same_bits

try:
    from loom.sklearn import LoomClassifier, LoomRegressor
    from sklearn import clone
    from sklearn.datasets import load_digits, load_iris, make_regression
    from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.estimator_checks import check_estimator
except ImportError as error:
    raise unittest.SkipTest(f"scikit-learn is not installed: {error}") from error


class Estimators(unittest.TestCase):
    def test_check_estimator_passes(self):
        for estimator in (LoomClassifier(), LoomRegressor(), LoomClassifier(early_stop=3)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                checks = check_estimator(estimator, on_fail=None)
            self.assertGreater(sum(c["status"] == "passed" for c in checks), 45)
            for check in checks:
                with self.subTest(estimator=estimator, check=check["check_name"]):
                    self.assertIn(check["status"], ("passed", "skipped"), check["exception"])

    def test_digits_are_read(self):
        x, y = load_digits(return_X_y=True)
        x, x_test, y, y_test = train_test_split(x, y, random_state=0)
        model = LoomClassifier(hidden=(32,), epochs=30, random_state=0).fit(x, y)
        self.assertGreater(model.score(x_test, y_test), 0.95)
        shares = model.predict_proba(x_test)
        np.testing.assert_allclose(shares.sum(1), 1)
        self.assertTrue((model.classes_[shares.argmax(1)] == model.predict(x_test)).all())

    def test_numbers_are_fitted(self):
        x, y = make_regression(200, 5, noise=1.0, random_state=0)
        self.assertGreater(LoomRegressor(random_state=0).fit(x, y).score(x, y), 0.95)
        both = np.stack([y, -y], axis=1)
        self.assertEqual(LoomRegressor().fit(x, both).predict(x).shape, (200, 2))

    def test_it_works_in_pipelines_and_searches(self):
        x, y = load_iris(return_X_y=True)
        model = make_pipeline(StandardScaler(), LoomClassifier(epochs=40, random_state=0))
        self.assertGreater(cross_val_score(model, x, y).mean(), 0.9)
        search = GridSearchCV(
            LoomClassifier(epochs=20, random_state=0), {"hidden": [(4,), (16,)]}, cv=2
        )
        self.assertGreater(search.fit(x, y).best_score_, 0.85)

    def test_equal_seeds_give_equal_bits(self):
        x, y = load_iris(return_X_y=True)
        model = LoomClassifier(epochs=5, random_state=3)
        first = model.fit(x, y).predict_proba(x)
        again = clone(model).set_params(threads=1).fit(x, y)
        self.assertTrue(same_bits(first, again.predict_proba(x)))
        self.assertTrue(same_bits(first, pickle.loads(pickle.dumps(again)).predict_proba(x)))
        other = LoomClassifier(epochs=5, random_state=4).fit(x, y)
        self.assertFalse(same_bits(first, other.predict_proba(x)))


if __name__ == "__main__":
    unittest.main()
