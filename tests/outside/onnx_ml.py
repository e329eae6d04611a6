#!/usr/bin/env python3
"""Operators of ai.onnx.ml in Loom's evaluator compared with ONNX Runtime, on random models.

  onnx_ml.py --program build/dev/tests/evaluate_runner [--count 300] [--seed 1] [--verbose]

Each case is one operator with random attributes. With the package skl2onnx there are also models of
scikit-learn that were trained on random numbers. A case is right if the labels are equal and
numbers are within 1e-5 of the largest. The last line counts. Exit status 1 if any is wrong.
"""

import argparse
import collections
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from onnx_standard import load_values, save_values

onnxruntime.set_default_logger_severity(4)


def model_of(op, inputs, outputs, version=1, **attributes):
    """inputs: arrays. outputs: element types."""
    names = [f"x{i}" for i in range(len(inputs))]
    made = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(op, names, made, domain="ai.onnx.ml", **attributes)
    kind = lambda v: helper.np_dtype_to_tensor_dtype(v.dtype)  # noqa: E731
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info(n, kind(v), [None] * v.ndim)
         for n, v in zip(names, inputs)],
        [helper.make_tensor_value_info(n, t, None) for n, t in zip(made, outputs)])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def features(rng):
    return rng.normal(size=(rng.integers(1, 7), rng.integers(1, 6))).astype(np.float32)


def some(rng, n):
    return rng.normal(size=n).astype(np.float32).tolist()


def post(rng):
    return str(rng.choice(["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]))


def scaler(rng):
    x = features(rng)
    n = x.shape[1]
    return model_of("Scaler", [x], [1], offset=some(rng, rng.choice([1, n])),
                    scale=some(rng, rng.choice([1, n]))), [x]


def normalizer(rng):
    x = features(rng)
    x[0, 0] = 1  # no standard defines a row without values
    return model_of("Normalizer", [x], [1], norm=str(rng.choice(["MAX", "L1", "L2"]))), [x]


def binarizer(rng):
    x = features(rng)
    return model_of("Binarizer", [x], [1], threshold=float(rng.normal())), [x]


def imputer(rng):
    if rng.random() < 0.5:
        x = rng.integers(0, 3, size=(4, 3))
        return model_of("Imputer", [x], [7], imputed_value_int64s=[7, 8, 9],
                        replaced_value_int64=1), [x]
    x = features(rng)
    x[rng.random(x.shape) < 0.4] = np.nan
    return model_of("Imputer", [x], [1], imputed_value_floats=some(rng, x.shape[1]),
                    replaced_value_float=float("nan")), [x]


def vectorizer(rng):
    rows = rng.integers(1, 5)
    parts = [rng.normal(size=(rows, rng.integers(1, 4))).astype(np.float32) for _ in range(3)]
    return model_of("FeatureVectorizer", parts, [1],
                    inputdimensions=[p.shape[1] for p in parts]), parts


def one_hot(rng):
    x = rng.integers(0, 5, size=(3, 2))
    return model_of("OneHotEncoder", [x], [1], cats_int64s=[1, 3, 4], zeros=1), [x]


def labels(rng):
    if rng.random() < 0.5:
        x = rng.integers(0, 5, size=(3, 2))
        return model_of("LabelEncoder", [x], [1], 2, keys_int64s=[1, 3], values_floats=[0.5, 2],
                        default_float=-3.0), [x]
    x = rng.integers(0, 4, size=6).astype(np.float32)
    return model_of("LabelEncoder", [x], [7], 2, keys_floats=[0.0, 2.0], values_int64s=[4, 9],
                    default_int64=-5), [x]


def regressor(rng):
    x = features(rng)
    k = int(rng.integers(1, 4))
    return model_of("LinearRegressor", [x], [1], coefficients=some(rng, k * x.shape[1]),
                    intercepts=some(rng, k), targets=k), [x]


def classifier(rng):
    x = features(rng)
    k = int(rng.integers(1, 5))
    names = [10 * i + 3 for i in range(max(k, 2))]
    how = str(rng.choice(["NONE", "LOGISTIC"])) if k == 1 else post(rng)
    return model_of("LinearClassifier", [x], [7, 1], coefficients=some(rng, k * x.shape[1]),
                    intercepts=some(rng, k), classlabels_ints=names, post_transform=how), [x]


def forest(rng, width):
    """Attributes of random trees, and their leaves as (tree, node)."""
    nodes, leaves = collections.defaultdict(list), []
    for tree in range(rng.integers(1, 6)):
        count = 0

        def grow(depth):
            nonlocal count
            me = count
            count += 1
            leaf = depth == 0 or rng.random() < 0.2
            at = len(nodes["nodes_nodeids"])
            for key, value in (("treeids", tree), ("nodeids", me),
                               ("featureids", int(rng.integers(width))),
                               ("values", float(np.float32(rng.normal()))),
                               ("modes", "LEAF" if leaf else str(rng.choice(MODES))),
                               ("missing_value_tracks_true", int(rng.integers(2))),
                               ("truenodeids", 0), ("falsenodeids", 0)):
                nodes["nodes_" + key].append(value)
            if leaf:
                leaves.append((tree, me))
                return me
            nodes["nodes_truenodeids"][at] = grow(depth - 1)
            nodes["nodes_falsenodeids"][at] = grow(depth - 1)
            return me

        grow(int(rng.integers(1, 5)))
    return dict(nodes), leaves


MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]


def forest_input(rng):
    x = rng.normal(size=(rng.integers(1, 40), rng.integers(1, 6))).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


def tree_regressor(rng):
    x = forest_input(rng)
    k = int(rng.integers(1, 4))
    nodes, leaves = forest(rng, x.shape[1])
    weights = [(t, n, int(i)) for t, n in leaves for i in range(k)]
    more = {"base_values": some(rng, k)} if rng.random() < 0.5 else {}
    return model_of(
        "TreeEnsembleRegressor", [x], [1], 3, **nodes, **more, n_targets=k,
        aggregate_function=str(rng.choice(["SUM", "AVERAGE", "MIN", "MAX"])),
        target_treeids=[w[0] for w in weights], target_nodeids=[w[1] for w in weights],
        target_ids=[w[2] for w in weights], target_weights=some(rng, len(weights))), [x]


def tree_classifier(rng):
    x = forest_input(rng)
    k = int(rng.integers(2, 5))
    nodes, leaves = forest(rng, x.shape[1])
    single = k == 2 and rng.random() < 0.6
    weights = [(t, n, i) for t, n in leaves for i in ([0] if single else range(k))]
    values = np.abs(some(rng, len(weights))) if rng.random() < 0.5 else some(rng, len(weights))
    more = {}
    if rng.random() < 0.4:
        more["base_values"] = some(rng, 1 if single else k)
    how = str(rng.choice(["NONE", "LOGISTIC"])) if single else post(rng)
    return model_of(
        "TreeEnsembleClassifier", [x], [7, 1], 3, **nodes, **more, post_transform=how,
        classlabels_int64s=[5 * i + 2 for i in range(k)],
        class_treeids=[w[0] for w in weights], class_nodeids=[w[1] for w in weights],
        class_ids=[w[2] for w in weights], class_weights=[float(v) for v in values]), [x]


def svm_regressor(rng):
    x = features(rng)
    n = int(rng.integers(1, 6))
    return model_of(
        "SVMRegressor", [x], [1], coefficients=some(rng, n), n_supports=n,
        support_vectors=some(rng, n * x.shape[1]), rho=some(rng, 1),
        kernel_type=str(rng.choice(KERNELS)), kernel_params=[0.4, 0.3, 2.0],
        one_class=int(rng.integers(2))), [x]


def svm_classifier(rng):
    x = features(rng)
    k = int(rng.integers(2, 5))
    each = [int(n) for n in rng.integers(1, 4, size=k)]
    n, pairs = sum(each), k * (k - 1) // 2
    more = {}
    if rng.random() < 0.5:
        more = {"prob_a": [-abs(v) - 0.1 for v in some(rng, pairs)], "prob_b": some(rng, pairs)}
    return model_of(
        "SVMClassifier", [x], [7, 1], coefficients=some(rng, n * (k - 1)), vectors_per_class=each,
        support_vectors=some(rng, n * x.shape[1]), rho=some(rng, pairs), **more,
        kernel_type=str(rng.choice(KERNELS)), kernel_params=[0.4, 0.3, 2.0],
        classlabels_ints=[3 * i + 1 for i in range(k)]), [x]


KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


def estimators():
    """Models of scikit-learn, by name; none if the packages are absent."""
    try:
        import sklearn.ensemble as e
        import sklearn.linear_model as m
        import sklearn.preprocessing as p
        import sklearn.svm as s
        import sklearn.tree as t
        from sklearn.pipeline import make_pipeline
        from skl2onnx import to_onnx
    except ImportError:
        return {}, None
    return {
        "LogisticRegression": lambda k: m.LogisticRegression(),
        "LinearRegression": lambda k: m.LinearRegression(),
        "Pipeline": lambda k: make_pipeline(p.StandardScaler(), p.Normalizer(),
                                            m.LogisticRegression()),
        "DecisionTree": lambda k: t.DecisionTreeClassifier(max_depth=4, random_state=k),
        "RandomForest": lambda k: e.RandomForestClassifier(9, max_depth=4, random_state=k),
        "GradientBoosting": lambda k: e.GradientBoostingClassifier(n_estimators=5, random_state=k),
        "ForestRegressor": lambda k: e.RandomForestRegressor(7, max_depth=4, random_state=k),
        "SVC": lambda k: s.SVC(),
        "SVC with probabilities": lambda k: s.SVC(probability=True, random_state=k),
        "SVR": lambda k: s.SVR(),
    }, to_onnx


def sklearn_case(rng, make, to_onnx):
    width, classes = int(rng.integers(2, 6)), int(rng.integers(2, 4))
    x = rng.normal(size=(80, width)).astype(np.float32)
    y = np.digitize(x @ rng.normal(size=width), np.linspace(-1, 1, classes + 1)[1:-1])
    estimator = make(int(rng.integers(1000)))
    is_regression = "Regress" in type(estimator).__name__ and hasattr(estimator, "predict") \
        and not hasattr(estimator, "predict_proba") or type(estimator).__name__ == "SVR"
    estimator.fit(x, x[:, 0] * 2 + rng.normal(size=80) if is_regression else y)
    fresh = rng.normal(size=(20, width)).astype(np.float32)
    return to_onnx(estimator, x[:1]), [fresh]


def known_labels(model):
    lists = (a.ints for a in model.graph.node[0].attribute if a.name == "classlabels_int64s")
    return set(next(lists))


def apart(got, want):
    if isinstance(want, list) and want and isinstance(want[0], dict):  # of ZipMap
        want = np.array([list(row.values()) for row in want], np.float32)
    want = np.asarray(want)
    if got is None or got.shape != want.shape or got.dtype != want.dtype:
        return f"{None if got is None else (got.shape, got.dtype)}, not {want.shape}, {want.dtype}"
    if want.dtype.kind in "iu":
        return "" if np.array_equal(got, want) else f"labels {got.ravel()}, not {want.ravel()}"
    bound = 1e-5 * max(1.0, float(np.nanmax(np.abs(want), initial=0)))
    if np.allclose(got, want, rtol=0, atol=bound, equal_nan=True):
        return ""
    return f"off by {np.nanmax(np.abs(got - want)):.3g}: {got.ravel()[:4]}, {want.ravel()[:4]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="also what is refused")
    args = parser.parse_args()
    kinds = [(f.__name__, f) for f in (
        scaler, normalizer, binarizer, imputer, vectorizer, one_hot, labels, regressor, classifier,
        tree_regressor, tree_classifier, svm_regressor, svm_classifier)]
    trained, to_onnx = estimators()
    kinds += [(name, lambda rng, make=make: sklearn_case(rng, make, to_onnx))
              for name, make in trained.items()]
    counts = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for i in range(args.count):
            name, make = kinds[i % len(kinds)]
            model, inputs = make(np.random.default_rng([args.seed, i]))
            path = f"{folder}/{i}"
            data = model.SerializeToString()
            try:
                session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
                want = session.run(None, dict(zip([v.name for v in session.get_inputs()], inputs)))
            except Exception as error:  # noqa: BLE001: the peer takes it for invalid
                counts[name]["peer refuses"] += 1
                if args.verbose:
                    print(f"{name} {i}: {error}")
                continue
            if name == "tree_classifier" and not set(want[0]) <= known_labels(model):
                counts[name]["peer has a label of no class"] += 1
                continue
            save_values(inputs, f"{path}.in")
            onnx.save(model, f"{path}.onnx")
            jobs.append((name, path, want))
        lines = "".join(f"{p}.onnx {p}.in {p}.out\n" for _, p, _ in jobs)
        ran = subprocess.run([args.program], input=lines, capture_output=True, text=True,
                             check=False)
        answers = ran.stdout.splitlines() + ["died"] * len(jobs)
        for (name, path, want), answer in zip(jobs, answers):
            if answer.startswith("refused"):
                result, why = "refused", answer
            elif answer != "ok":
                result, why = "wrong", answer
            else:
                got = load_values(f"{path}.out")
                why = next((w for g, v in zip(got, want) if (w := apart(g, v))), "")
                result = "wrong" if why or len(got) != len(want) else "right"
            counts[name][result] += 1
            if result == "wrong" or (args.verbose and result != "right"):
                print(f"{result}: {name} {path.rsplit('/', 1)[-1]}: {why}")
    total = collections.Counter()
    for name, row in counts.items():
        total.update(row)
        print(f"{name:24}" + ", ".join(f"{n} {k}" for k, n in row.items()))
    skipped = sum(total.values()) - total["right"] - total["wrong"]
    print(f"{total['right']} passed, {total['wrong']} failed, {skipped} skipped")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
