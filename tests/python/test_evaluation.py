"""Deviation of answers, adaptation to tasks, and folds of data."""

import math
import random
import tempfile
import time
import unittest
from pathlib import Path

import loom
from support import points


def deviation(answer, truth):
    """Percent, by docs/evaluation.md."""
    off = abs(answer - truth)
    return 100 * off / abs(truth) if abs(truth) >= 1e-10 else 100 * off


class Deviation(unittest.TestCase):
    def setUp(self):
        draw = random.Random(5)
        self.truths = [draw.gauss(0, 2) for _ in range(60)] + [0.0, 1.0]
        self.answers = [t * draw.uniform(0.2, 1.9) for t in self.truths[:-1]] + [math.nan]
        self.off = loom.DeviationMetrics()
        self.off.add(self.answers, self.truths)
        self.each = [deviation(a, t) for a, t in zip(self.answers, self.truths)]
        self.each[-1] = math.inf

    def test_the_summary_is_the_one_of_its_definition(self):
        found, valid = self.off.summary, self.each[:-1]
        self.assertEqual((found.samples, found.invalid), (62, 1))
        self.assertEqual(found.failures, sum(d > 100 for d in self.each))
        self.assertAlmostEqual(found.score, sum(max(0, 100 - d) for d in valid) / 62)
        self.assertAlmostEqual(found.average, sum(valid) / 61)
        self.assertAlmostEqual(found.accuracy, 100 * sum(d == 0 for d in valid) / 62)

    def test_buckets_and_the_worst_are_places_of_samples(self):
        buckets = self.off.buckets()
        self.assertEqual(sorted(sum(buckets.values(), [])), list(range(62)))
        self.assertEqual(
            buckets["0-10%"], [i for i, d in enumerate(self.each) if d <= 10]
        )
        worst = self.off.worst(5)
        self.assertEqual(worst, sorted(range(62), key=lambda i: -self.each[i])[:5])
        with self.assertRaisesRegex(loom.NotFoundError, "0-10%"):
            self.off.in_bucket("all")

    def test_a_file_gives_the_same_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "off.json"
            self.off.save(path)
            self.assertEqual(loom.DeviationMetrics.load(path).summary, self.off.summary)
        with self.assertRaises(loom.BadFileError):
            loom.DeviationMetrics.from_json("{}")

    def test_classes_are_right_or_wrong(self):
        off = loom.DeviationMetrics()
        off.add_class([0, 1, 2, 1], [0, 1, 1, 1])
        self.assertEqual(off.summary.accuracy, 75.0)
        self.assertEqual([s["deviation"] for s in off.samples], [0, 0, 100, 0])
        with self.assertRaisesRegex(ValueError, "1 answers for 2 truths"):
            off.add([1.0], [1.0, 2.0])


class Adaptation(unittest.TestCase):
    def test_outputs_are_counted_in_windows_and_tasks_change(self):
        tracker = loom.AdaptationTracker(duration=0.4, window=0.1)
        tracker.schedule(0.15, 7)
        with self.assertRaises(ValueError):
            tracker.schedule(0.1, 8)
        tracker.start(3)
        self.assertEqual((tracker.record(True), tracker.task, tracker.over), (3, 3, False))
        end = time.monotonic() + 30
        while not tracker.over and time.monotonic() < end:
            tracker.record(tracker.task == 7)
        report = tracker.report()
        self.assertEqual(len(report.windows), 4)
        self.assertEqual(report.outputs, sum(w.outputs for w in report.windows))
        self.assertEqual([(c.from_task, c.to_task) for c in report.changes], [(3, 7)])
        self.assertEqual(report.changes[0].window_after, report.changes[0].window_before + 1)
        with self.assertRaisesRegex(ValueError, "window is 0"):
            loom.AdaptationTracker(window=0)


class Folds(unittest.TestCase):
    def test_folds_are_alike_and_hold_each_sample_once(self):
        x, y = points(50)
        data = loom.Dataset(x, y)
        seen, sizes = [], []
        for number in range(4):
            rest, held = data.fold(number, 4, seed=2)
            self.assertEqual(len(rest) + len(held), 50)
            sizes.append(len(held))
            seen += [tuple(row) for row in held.x.tolist()]
        self.assertLessEqual(max(sizes) - min(sizes), 3)
        self.assertEqual(sorted(seen), sorted(tuple(row) for row in x.tolist()))
        with self.assertRaises(ValueError):
            data.fold(0, 1)

    def test_a_data_set_tells_what_it_is(self):
        x, y = points(20)
        info, same = loom.Dataset(x, y).info, loom.Dataset(x.copy(), y).info
        self.assertEqual(info, same)
        self.assertEqual((len(info["hash"]), info["columns"], info["in_memory"]), (32, [], 1))
        self.assertNotEqual(loom.Dataset(x + 1, y).info["hash"], info["hash"])


if __name__ == "__main__":
    unittest.main()
