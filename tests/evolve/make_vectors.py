#!/usr/bin/env python3
"""Writes tests/data/evolve/vectors.json: what NumPy, SciPy and scikit-learn say of random cases.

    tests/evolve/make_vectors.py            write it (needs numpy, scipy, scikit-learn)
    tests/evolve/make_vectors.py --check    compare with what is there; exit 1 where it differs

Merging is computed here in float64 and rounded to float32 once; floats are written as their bits.
The methods are those of the papers that loom/merge.hpp names, in the form of mergekit.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

PATH = Path(__file__).resolve().parents[1] / "data" / "evolve" / "vectors.json"
METRICS = [("euclidean", "euclidean"), ("manhattan", "cityblock"), ("cosine", "cosine")]
METHODS = ["linear", "slerp", "task_arithmetic", "ties", "dare_linear", "dare_ties"]
WORD = 0xFFFFFFFF


def philox(seed, stream, index):
    """Philox4x32-10 (Salmon et al., 2011): four numbers of 32 bits."""
    c = [index & WORD, index >> 32, stream & WORD, stream >> 32]
    k = [seed & WORD, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & WORD, (a >> 32) ^ c[3] ^ k[1], a & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c


def uniform(seed, stream, count):
    """The first numbers of a stream in [0, 1), 24 bits each."""
    words = [philox(seed, stream, i // 4)[i % 4] for i in range(count)]
    return np.array(words, dtype=np.float64) // 256 / 2.0**24


def trim(delta, density):
    keep = max(1, int(density * delta.size))
    if density >= 1:
        return delta
    order = np.argsort(-np.abs(delta), kind="stable")[:keep]
    out = np.zeros_like(delta)
    out[order] = delta[order]
    return out


def drop(delta, density, seed, stream):
    if density >= 1:
        return delta
    return np.where(uniform(seed, stream, delta.size) < density, delta / density, 0.0)


def slerp(a, b, t):
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    cosine = np.clip(np.dot(a, b) / lengths, -1, 1) if lengths > 0 else 1.0
    if abs(cosine) > 0.9995:
        return (1 - t) * a + t * b
    angle = np.arccos(cosine)
    return (np.sin((1 - t) * angle) * a + np.sin(t * angle) * b) / np.sin(angle)


def merged(case, models, base):
    """The parameter as float64. Sums run over the models in order."""
    w = np.array(case["weights"])
    method, divide = case["method"], case["normalize"]
    if method == "linear":
        total, by = np.zeros_like(models[0]), 0.0
        for weight, model in zip(w, models):
            total, by = total + weight * model, by + weight
        return total / by if divide and abs(by) >= 1e-8 else total
    if method == "slerp":
        return slerp(models[0], models[1], case["t"])
    deltas = [m - base for m in models]
    for i, density in enumerate(case["densities"]):
        if method == "ties":
            deltas[i] = trim(deltas[i], density)
        if method.startswith("dare"):
            deltas[i] = drop(deltas[i], density, case["seed"], (case["stream"] << 16) + i)
    parts = [weight * delta for weight, delta in zip(w, deltas)]
    masks = [np.ones(base.shape, dtype=bool)] * len(parts)
    if method.endswith("ties"):
        majority = np.where(sum(parts) >= 0, 1, -1)
        masks = [np.sign(part) == majority for part in parts]
    total = sum(np.where(mask, part, 0.0) for mask, part in zip(masks, parts))
    by = sum(np.where(mask, weight, 0.0) for mask, weight in zip(masks, w))
    if divide:
        total = total / np.where(np.abs(by) < 1e-8, 1.0, by)
    return base + case["lambda"] * total


def bits(values):
    return [int(v) for v in np.asarray(values, dtype=np.float32).view(np.uint32)]


def merge_cases(rng):
    cases = []
    for method in METHODS:
        for number, size in enumerate([1, 7, 24, 50, 90]):
            count = 2 if method == "slerp" else int(rng.integers(2, 5))
            values = rng.normal(size=(count + 1, size)).astype(np.float32)
            if number == 2:  # many equal magnitudes, and zeros
                values = (np.round(values * 2) / 2).astype(np.float32)
            if number == 3:
                values[1] = values[0] * np.float32(1.5)  # parallel: a line, not an arc
            thins = method in ("ties", "dare_linear", "dare_ties")
            case = {
                "method": method,
                "weights": [round(float(w), 3) for w in rng.uniform(-0.5, 1.5, count)],
                "densities": [
                    round(float(d), 2) if thins else 1.0 for d in rng.uniform(0.1, 1, count)
                ],
                "normalize": bool(rng.integers(2)),
                "lambda": 1.0 if number % 2 else round(float(rng.uniform(0.3, 1.6)), 3),
                "t": round(float(rng.uniform()), 3),
                "seed": int(rng.integers(1, 2**40)),
                "stream": int(rng.integers(0, 2**20)),
            }
            wide = values.astype(np.float64)
            case["models"] = [bits(v) for v in values[:count]]
            case["base"] = bits(values[count])
            out = merged(case, list(wide[:count]), wide[count])
            case["expected"] = bits(out.astype(np.float32))
            cases.append(case)
    return cases


def points_of(rng, n, d, groups):
    centers = rng.normal(scale=4, size=(groups, d))
    return np.round(centers[rng.integers(groups, size=n)] + rng.normal(size=(n, d)), 4)


def kmeans_cases(rng):
    cases = []
    for n, d, k in [(8, 1, 2), (40, 2, 3), (90, 3, 5), (60, 8, 4)]:
        points = points_of(rng, n, d, k)
        start = points[rng.choice(n, k, replace=False)]
        fit = KMeans(k, init=start, n_init=1, max_iter=300, tol=1e-4, algorithm="lloyd").fit(points)
        cases.append({
            "points": points.tolist(), "start": start.tolist(), "labels": fit.labels_.tolist(),
            "centers": fit.cluster_centers_.tolist(), "inertia": float(fit.inertia_),
            "silhouette": {
                name: float(silhouette_score(points, fit.labels_, metric=metric))
                for name, metric in METRICS
            },
        })  # fmt: skip
    return cases


def linkage_cases(rng):
    cases = []
    for n, d in [(2, 1), (9, 2), (24, 3)]:
        points = points_of(rng, n, d, 3) + (0.0 if d > 1 else 5.0)
        for method in ["single", "complete", "average"]:
            for name, metric in METRICS[: 3 if d > 1 else 2]:
                tree = linkage(points, method, metric)
                threshold = float(np.median(tree[:, 2]))
                cases.append({
                    "points": points.tolist(), "method": method, "distance": name,
                    "merges": tree.tolist(), "threshold": threshold,
                    "cut": fcluster(tree, threshold, "distance").tolist(),
                })  # fmt: skip
    return cases


def assignment_cases(rng):
    cases = []
    for n in [1, 2, 5, 17]:
        gains = np.round(rng.uniform(-1, 1, (n, n)), 4)
        rows, columns = linear_sum_assignment(gains, maximize=True)
        cases.append({"gains": gains.ravel().tolist(), "n": n, "columns": columns.tolist(),
                      "sum": float(gains[rows, columns].sum())})  # fmt: skip
    return cases


def main():
    rng = np.random.default_rng(18)
    out = {
        "merge": merge_cases(rng),
        "kmeans": kmeans_cases(rng),
        "linkage": linkage_cases(rng),
        "assignment": assignment_cases(rng),
    }
    lines = [
        f'"{kind}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]"
        for kind, cases in out.items()
    ]
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if "--check" in sys.argv[1:]:
        same = PATH.read_text() == text
        print(f"{'1 passed, 0' if same else '0 passed, 1'} failed, 0 skipped")
        return 0 if same else 1
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
