#!/usr/bin/env python3
"""loom train, predict and eval compared with scikit-learn, on its own data sets.

  sklearn_check.py LOOM

Digits, iris, wine, breast_cancer and diabetes are written as CSV. The same rows train a network of
the same layers here and there, with Adam and standardized inputs, from several seeds. The mean
score on the held-out rows is compared: accuracy, or R2. The check fails if ours is more than one
percentage point lower, or `predict` and `eval` disagree. It also fails if scikit-learn scores the
outputs of `predict` differently from `eval`.
"""

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn import datasets, metrics
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

SEEDS, HELD_OUT, MARGIN = 5, 0.3, 0.01
# name, hidden widths, epochs, learning rate
CASES = [
    ("iris", [16], 200, 1e-2),
    ("wine", [16], 100, 1e-2),
    ("breast_cancer", [32], 60, 1e-3),
    ("digits", [64], 60, 1e-3),
    ("diabetes", [16], 150, 1e-2),
    ("diabetes, scaled", [16], 20, 1e-2),
]
BATCH = 32


def loom(program: str, *arguments: str) -> str:
    ran = subprocess.run([program, *arguments], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"loom {' '.join(arguments)}\n{ran.stderr}")
    return ran.stdout


def write_csv(path: Path, x: np.ndarray, y: np.ndarray) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        for inputs, target in zip(x, y):
            rows.writerow([repr(float(v)) for v in inputs] + [target])


def ours(program: str, folder: Path, case, split, classes: int, seed: int) -> float:
    """The score of a network trained by loom; checks predict and eval against scikit-learn."""
    name, hidden, epochs, rate = case
    x_train, x_test, y_train, y_test = split
    train, test, net = folder / "train.csv", folder / "test.csv", folder / "net.json"
    weights, outputs = folder / "net.entity", folder / "outputs.npz"
    write_csv(train, x_train, y_train)
    write_csv(test, x_test, y_test)
    widths = ",".join(map(str, hidden))
    loom(program, "new", "mlp", "--in", str(x_train.shape[1]), "--hidden", widths, "--out",
         str(classes or 1), "-o", str(net), "--force")
    loom(program, "train", str(net), str(train), "--normalize", "standard", "--epochs", str(epochs),
         "--batch", str(BATCH), "--rate", str(rate), "--seed", str(seed), "--schedule", "constant",
         *([] if name.endswith("scaled") else ["--no-target-scale"]), "--quiet", "--force", "-o",
         str(weights))
    report = json.loads(loom(program, "eval", str(weights), str(test), "--json"))
    loom(program, "predict", str(weights), str(test), "-o", str(outputs), "--force", "--quiet")
    said = np.load(outputs)
    if not classes:
        score = metrics.r2_score(y_test, said["outputs"][:, 0])
        check(name, "R2", report["r2"], score)
        check(name, "mean absolute error", report["mean_absolute_error"],
              metrics.mean_absolute_error(y_test, said["outputs"][:, 0]))
        return score
    score = metrics.accuracy_score(y_test, said["labels"])
    check(name, "accuracy", report["accuracy"], score)
    if report["confusion"] != metrics.confusion_matrix(y_test, said["labels"]).tolist():
        sys.exit(f"{name}: eval and scikit-learn count other classes")
    table = metrics.precision_recall_fscore_support(y_test, said["labels"], zero_division=0)
    for c, (p, r, f1) in enumerate(zip(*table[:3])):
        for key, value in (("precision", p), ("recall", r), ("f1", f1)):
            check(name, f"{key} of class {c}", report["classes"][c][key], value)
    return score


def check(name: str, what: str, value: float, expected: float) -> None:
    if abs(value - expected) > 1e-5 * max(1.0, abs(expected)):
        sys.exit(f"{name}: {what} is {value}, scikit-learn says {expected}")


def theirs(case, split, classes: int, seed: int) -> float:
    _, hidden, epochs, rate = case
    x_train, x_test, y_train, y_test = split
    scaler = StandardScaler().fit(x_train)
    kind = MLPClassifier if classes else MLPRegressor
    model = kind(hidden_layer_sizes=hidden, solver="adam", alpha=0, batch_size=BATCH,
                 learning_rate_init=rate, max_iter=epochs, n_iter_no_change=epochs, tol=0,
                 random_state=seed)
    if case[0].endswith("scaled"):
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    return model.fit(scaler.transform(x_train), y_train).score(scaler.transform(x_test), y_test)


def main() -> None:
    program, failed = sys.argv[1], 0
    print(f"{'data':<14} {'rows':>5} {'scikit-learn':>13} {'loom':>8}")
    for case in CASES:
        name = case[0].split(",")[0]
        data = getattr(datasets, f"load_{name}")()
        classes = 0 if name == "diabetes" else len(data.target_names)
        a, b = [], []
        for seed in range(1, SEEDS + 1):
            split = train_test_split(data.data, data.target, test_size=HELD_OUT, random_state=seed,
                                     stratify=data.target if classes else None)
            with tempfile.TemporaryDirectory() as folder:
                a.append(ours(program, Path(folder), case, split, classes, seed))
            b.append(theirs(case, split, classes, seed))
        worse = np.mean(a) < np.mean(b) - MARGIN
        failed += int(worse)
        print(f"{case[0]:<14} {len(data.data):>5} {np.mean(b):>13.4f} {np.mean(a):>8.4f}"
              f"{'  more than 1 point below' if worse else ''}", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
