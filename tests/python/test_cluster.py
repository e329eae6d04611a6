"""Groups of points and of models: k-means and linkage beside SciPy's rules, votes and stacking."""

import json
import os
import tempfile
import unittest

import loom
import numpy as np
from loom import cluster
from support import PROGRAM, needs_program, run, same_bits

RANDOM = np.random.default_rng(4)
POINTS = np.concatenate([RANDOM.normal(c, 0.3, (20, 2)) for c in ((0, 0), (4, 0), (0, 5))])
TRUTH = np.repeat([0, 1, 2], 20)


def pairs(labels):
    labels = np.asarray(labels)
    return labels[:, None] == labels[None, :]


def naive_linkage(points, method):
    """Merges by the definition: of all pairs of groups the two that are nearest."""
    groups = {i: [i] for i in range(len(points))}
    between = np.sqrt(((points[:, None] - points[None, :]) ** 2).sum(2))
    pick = {"single": np.min, "complete": np.max, "average": np.mean}[method]
    found = []
    while len(groups) > 1:
        names = sorted(groups)
        best = min(
            (pick(between[np.ix_(groups[a], groups[b])]), a, b)
            for i, a in enumerate(names) for b in names[i + 1 :]
        )  # fmt: skip
        distance, a, b = best
        groups[len(points) + len(found)] = groups.pop(a) + groups.pop(b)
        found.append((a, b, distance, len(groups[len(points) + len(found)])))
    return np.array(found)


class Grouping(unittest.TestCase):
    def test_kmeans_finds_groups_that_are_apart_and_says_how_it_ended(self):
        found = loom.kmeans(POINTS, clusters=3, seed=7)
        self.assertTrue((pairs(found.labels) == pairs(TRUTH)).all())
        self.assertTrue(found.converged)
        self.assertGreaterEqual(found.rounds, 1)
        near = ((POINTS[:, None] - found.centers[None, :]) ** 2).sum(2)
        self.assertEqual(near.argmin(1).tolist(), found.labels.tolist())
        self.assertAlmostEqual(found.inertia, near.min(1).sum())
        for label, center in enumerate(found.centers):
            np.testing.assert_allclose(center, POINTS[found.labels == label].mean(0))

    def test_each_option_of_kmeans_arrives(self):
        points = RANDOM.normal(0, 1, (60, 3))
        plain = loom.kmeans(points, clusters=6)
        self.assertTrue(same_bits(loom.kmeans(points, clusters=6).centers, plain.centers))
        for given in ({"clusters": 5}, {"seed": 2, "restarts": 1},
                      {"plus_plus": False, "restarts": 1}, {"most_rounds": 1, "restarts": 1},
                      {"tolerance": 10.0, "restarts": 1}):  # fmt: skip
            with self.subTest(**given):
                other = loom.kmeans(points, **{"clusters": 6, **given})
                self.assertFalse(same_bits(other.centers, plain.centers))
        start = points[:6].copy()
        begun = loom.kmeans(points, clusters=6, start=start, most_rounds=1)
        near = ((points[:, None] - start[None, :]) ** 2).sum(2).argmin(1)
        wanted = [points[near == k].mean(0) for k in range(6)]
        np.testing.assert_allclose(begun.centers, wanted)
        seen = []
        loom.kmeans(points, restarts=3, progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen[-1], (3, 3))
        with self.assertRaises(loom.CancelledError):
            loom.kmeans(points, progress=lambda done, total: False)

    def test_linkage_is_the_one_of_its_definition(self):
        points = RANDOM.normal(0, 1, (14, 3))
        for method in ("single", "complete", "average"):
            tree = loom.linkage(points, method=method)
            wanted = naive_linkage(points, method)
            with self.subTest(method):
                np.testing.assert_allclose(tree.merges, wanted, atol=1e-9)
                apart = np.sqrt(((points[:, None] - points[None, :]) ** 2).sum(2))
                same = loom.linkage_of_distances((apart + apart.T) / 2, method=method)
                np.testing.assert_allclose(same.merges, wanted, atol=1e-9)
        self.assertEqual(repr(tree), "<loom.Linkage of 14 points>")

    def test_a_tree_is_cut_by_distance_or_into_groups(self):
        tree = loom.linkage(POINTS, method="average")
        for labels in (tree.cut_into(3), tree.cut_at(2.0)):
            self.assertTrue((pairs(labels) == pairs(TRUTH)).all())
        self.assertEqual(tree.cut_into(1).tolist(), [0] * 60)
        self.assertEqual(len(set(tree.cut_at(0.0).tolist())), 60)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "merge 0 names a group"):
            loom.Linkage(np.array([[9.0, 0, 1, 2]])).cut_into(1)

    def test_silhouette_is_the_one_of_its_definition(self):
        labels = loom.kmeans(POINTS, clusters=4).labels
        for distance in ("euclidean", "manhattan", "cosine"):
            if distance == "euclidean":
                apart = np.sqrt(((POINTS[:, None] - POINTS[None, :]) ** 2).sum(2))
            elif distance == "manhattan":
                apart = np.abs(POINTS[:, None] - POINTS[None, :]).sum(2)
            else:
                unit = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
                apart = 1 - unit @ unit.T
            scores = []
            for i, mine in enumerate(labels):
                own = (labels == mine) & (np.arange(60) != i)
                if not own.any():
                    scores.append(0.0)
                    continue
                a = apart[i][own].mean()
                b = min(apart[i][labels == k].mean() for k in set(labels) - {mine})
                scores.append((b - a) / max(a, b))
            found = loom.silhouette(POINTS, labels, distance=distance)
            self.assertAlmostEqual(found, np.mean(scores), places=9)

    def test_what_is_wrong_is_told_by_name(self):
        for call, words in (
            (lambda: loom.kmeans(POINTS, clusters=0), "clusters is 0, must be 1 or more"),
            (lambda: loom.linkage(POINTS, method="ward"), "unknown linkage 'ward'"),
            (lambda: loom.linkage(POINTS, distance="far"), "unknown distance 'far'"),
            (lambda: loom.silhouette(POINTS, TRUTH, distance="far"), "no distance 'far'"),
            (lambda: loom.linkage_of_distances(POINTS), r"\[n, n\]"),
            (lambda: loom.linkage(POINTS).cut_into(0), "groups is 0"),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()

    def test_files_give_points_and_checkpoints_give_layers(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.npy")
            np.save(path, POINTS)
            np.testing.assert_allclose(cluster.load_points(path), POINTS, rtol=1e-6)
            net = loom.Sequential([loom.Dense(4, 6), loom.Dense(6, 3)], input=4)
            file = os.path.join(folder, "net.safetensors")
            net.save(file)
            groups = cluster.group_tensors(file)
            self.assertEqual(sum(g["weights"] for g in groups), 4 * 6 + 6 + 6 * 3 + 3)
            names = {t["name"]: t["shape"] for group in groups for t in group["tensors"]}
            self.assertEqual(sorted(names.values()), [[3], [3, 6], [6], [6, 4]])

    @needs_program
    def test_the_program_has_the_same_groups(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.npy")
            np.save(path, POINTS)
            told = json.loads(run(PROGRAM, "cluster", path, "--json", "--k", 3, "--seed", 7))
        found = loom.kmeans(POINTS.astype(np.float32), clusters=3, seed=7)
        self.assertEqual((told["labels"], told["inertia"]), (found.labels.tolist(), found.inertia))


class Ensembles(unittest.TestCase):
    def test_votes_are_sums_of_weights(self):
        said = RANDOM.integers(0, 4, (5, 40))
        weights = RANDOM.random(5)
        for given in (None, list(weights)):
            counts = np.zeros((40, 4))
            for model, row in enumerate(said):
                counts[np.arange(40), row] += 1 if given is None else given[model]
            voted = loom.majority_vote(said, weights=given)
            self.assertEqual(voted.tolist(), counts.argmax(1).tolist())
        self.assertEqual(loom.majority_vote([[0, 1, 1], [0, 1, 2], [2, 1, 2]]).tolist(), [0, 1, 2])
        with self.assertRaisesRegex(ValueError, "2 weights for 5 models"):
            loom.majority_vote(said, weights=[1, 2])
        with self.assertRaisesRegex(ValueError, "int64"):
            loom.majority_vote(said.astype(np.float32))

    def test_a_soft_vote_is_the_weighted_mean(self):
        shares = [RANDOM.random((7, 3)).astype(np.float32) for _ in range(3)]
        np.testing.assert_allclose(loom.soft_vote(shares), np.mean(shares, axis=0), atol=1e-6)
        mean = np.average(np.array(shares), axis=0, weights=[1, 2, 5])
        np.testing.assert_allclose(loom.soft_vote(shares, weights=[1, 2, 5]), mean, atol=1e-6)

    def test_pairs_and_covers_are_those_of_the_masks(self):
        masks = RANDOM.random((5, 30)) < 0.5
        found = loom.complementary_pairs(masks)
        self.assertEqual(len(found), 10)
        for pair in found:
            a, b = masks[pair.a], masks[pair.b]
            self.assertAlmostEqual(pair.coverage, (a | b).mean())
            self.assertAlmostEqual(pair.overlap, (a & b).mean())
        shares = [pair.coverage for pair in found]
        self.assertEqual(shares, sorted(shares, reverse=True))
        best = shares[0]
        kept = loom.complementary_pairs(masks, least=best)
        self.assertTrue(all(pair.coverage >= best for pair in kept))
        cover = loom.greedy_cover(masks)
        self.assertAlmostEqual(cover.coverage[-1], masks.any(0).mean())
        self.assertEqual(cover.models[0], masks.sum(1).argmax())
        self.assertEqual(len(loom.greedy_cover(masks, most=2).models), 2)

    def test_a_judge_over_two_models_is_a_network(self):
        labels = RANDOM.integers(0, 3, 200)
        right = np.eye(3, dtype=np.float32)[labels]
        # Each knows a class that the other does not.
        shares = [right * np.array(m, np.float32) for m in ([1, 0, 0.5], [0, 1, 0.5])]
        beside = loom.stack_inputs(shares)
        self.assertTrue(same_bits(beside, np.concatenate(shares, axis=1)))
        judge = loom.stack(shares, labels)
        self.assertEqual(judge.predict(beside).argmax(1).tolist(), labels.tolist())
        again = loom.stack(shares, labels, rounds=2)
        self.assertFalse(same_bits(again.predict(beside), judge.predict(beside)))
        with self.assertRaisesRegex(ValueError, "labels"):
            loom.stack(shares, labels[:5])


if __name__ == "__main__":
    unittest.main()
