"""Searches for networks, telemetry, observers of training, and models between files."""

import json
import math
import os
import unittest
from pathlib import Path

import loom
import numpy as np
from loom import files
from support import PROGRAM, Scratch, needs_program, points, run, same_bits


def small(seed=1):
    layers = [loom.Dense(4, 8, activation="relu"), loom.Dense(8, 3)]
    return loom.Sequential(layers, input=4, seed=seed)


class Searches(Scratch):
    def setUp(self):
        super().setUp()
        self.data = loom.Dataset(*points())

    def test_a_search_by_gradients_goes_on_from_its_file_with_the_same_bits(self):
        def search():
            return loom.DartsSearch(small(), self.data, epochs=2, order=1, batch=16)

        first = search()
        self.assertEqual((first.epoch, first.epochs), (0, 2))
        steps = []
        told = first.step(progress=lambda done, total: steps.append((done, total)))
        self.assertEqual(told.epoch, 1)
        self.assertEqual(steps[-1][0], steps[-1][1])
        path = str(self.folder / "search.safetensors")
        first.save(path)
        first.step()
        again = loom.DartsSearch.load(path, self.data)
        again.step()
        self.assertEqual(again.history, first.history)
        for cell in first.cells:
            self.assertAlmostEqual(sum(cell.weights), 1.0, places=6)
            self.assertEqual(len(cell.branches), len(cell.weights))
        choice = first.choice()
        found = first.found()
        self.assertEqual(len(choice), len(first.cells))
        self.assertEqual(found.predict(points()[0]).shape[1], 3)
        with self.assertRaisesRegex(ValueError, "epochs"):
            first.step()
        with self.assertRaisesRegex(ValueError, "order is 3, must be 1 to 2"):
            loom.DartsSearch(small(), self.data, order=3)

    def test_whole_networks_evolve_and_each_option_arrives(self):
        def search(**given):
            given = {"population": 3, "epochs": 1, "seed": 2, **given}
            return loom.ArchitectureSearch(small(), self.data, **given)

        first = search()
        seen = []
        report = first.step(threads=1, progress=lambda done, total: seen.append(done))
        self.assertEqual(report.generation, 0)
        self.assertGreaterEqual(len(seen), 1)
        self.assertEqual(first.objectives, ["accuracy", "parameters"])
        self.assertEqual(len(first.members), 3)
        self.assertIn(first.front[0].id, [m.id for m in first.members])
        self.assertEqual(first.seed.parameters, 4 * 8 + 8 + 8 * 3 + 3)
        path = str(self.folder / "search.json")
        first.save(path)
        first.step()
        again = loom.ArchitectureSearch.load(path, self.data)
        again.step()
        self.assertEqual(again.members, first.members)
        best = first.members[0]
        net = first.network(best.id)
        self.assertEqual(net.info["parameters"], best.parameters)
        for given in ({"objectives": ["loss", "bytes"]}, {"seed": 3}, {"batch": 8}, {"rate": 0.1}):
            with self.subTest(**given):
                other = search(**given)
                other.step()
                self.assertNotEqual((other.objectives, other.members),
                                    (first.objectives, first.members))  # fmt: skip
        with self.assertRaises(loom.NotFoundError):
            first.network(10**6)


class Observers(Scratch):
    def test_layers_passes_and_links_are_seen(self):
        x, y = points()
        layers, passes, links = [], [], []
        net = small()
        net.fit(x, y, epochs=2, batch=len(x), rule="dfa", on_layer=layers.append,
                on_pass=passes.append, on_link=links.append)  # fmt: skip
        self.assertEqual({s.epoch for s in layers}, {1, 2})
        self.assertEqual({s.type for s in layers}, {"Dense"})
        for stats in layers:
            self.assertLessEqual(stats.min, stats.mean)
            self.assertLessEqual(stats.active, stats.total)
        forward = [p for p in passes if not p.backward]
        self.assertEqual({p.shape for p in forward}, {(len(x), 8), (len(x), 3)})
        self.assertTrue(all(p.begin_ns <= p.end_ns for p in passes))
        self.assertTrue(all(0 <= link.budget <= 1 and math.isfinite(link.gap) for link in links))
        self.assertGreaterEqual(len(links), 2)

    def test_a_run_tells_where_it_goes_on(self):
        data, path, seen = loom.Dataset(*points()), str(self.folder / "run.ckpt"), []
        for epochs in (2, 3):
            with loom.Trainer(small(), schedule="cosine") as trainer:
                trainer.fit(data, epochs=epochs, checkpoint=path, resume=epochs == 3,
                            on_begin=lambda *told: seen.append(told))  # fmt: skip
        self.assertEqual(seen, [("", 0, 0), (path, 2, 2)])
        with loom.Trainer(small(), schedule="cosine") as trainer:  # as of earlier versions
            trainer.fit(data, epochs=4, checkpoint=path, resume=True,
                        on_begin=lambda path, epochs: seen.append(epochs))  # fmt: skip
        self.assertEqual(seen[2], 3)

    def test_an_observer_ends_the_training_and_is_not_called_after_it(self):
        x, y = points()
        data = loom.Dataset(x, y)
        seen = []
        with loom.Trainer(small(), batch=16) as trainer:
            def stop(event):
                seen.append(event)
                return len(seen) < 3
            with self.assertRaises(loom.CancelledError):
                trainer.fit(data, epochs=50, on_pass=stop)
            count = len(seen)
            trainer.step(x[:16], y[:16])
            self.assertEqual(len(seen), count)

        def fails(event):
            raise RuntimeError("of the caller")

        with loom.Trainer(small(), batch=16) as trainer:
            with self.assertRaisesRegex(RuntimeError, "of the caller"):
                trainer.fit(data, epochs=50, on_layer=fails)

    def test_telemetry_tells_epochs_and_numbers(self):
        x, y = points()
        lines, path = [], str(self.folder / "told.jsonl")
        with loom.Telemetry(json_lines=path, on_line=lines.append) as told:
            net = small()
            history = net.fit(x, y, epochs=3, telemetry=told)
            told.scalar("reward", 7, 0.25)
            told.histogram("values", 1, np.arange(6, dtype=np.float32))
            told.weights(3, net)
            self.assertEqual((told.dropped, told.passes_dropped), (0, 0))
        self.assertTrue(told.closed)
        with open(path, encoding="utf-8") as file:
            written = [json.loads(line) for line in file]
        self.assertEqual([json.loads(line) for line in lines], written)
        text = json.dumps(written)
        for word in ("reward", "values", "weights/"):
            self.assertIn(word, text)
        self.assertIn(json.dumps(history.epochs[0].train_loss)[:8], text)
        with self.assertRaises(ValueError):
            loom.Telemetry()
        with self.assertRaisesRegex(ValueError, "queue is 0"):
            loom.Telemetry(json_lines=path, queue=0)

    def test_a_trainer_tells_what_is_frozen_and_writes_its_weights(self):
        x, y = points()
        with loom.Trainer(small(), freeze=["(0, 0, 0, 0)/*"]) as trainer:
            trainer.fit(loom.Dataset(x, y), epochs=2)
            self.assertEqual((trainer.frozen, trainer.epoch), (4 * 8 + 8, 2))
            path = str(self.folder / "weights.entity")
            trainer.save_weights(path)
            self.assertTrue(
                same_bits(loom.Network.load(path).predict(x), trainer.network.predict(x))
            )
        net = small()
        net.fit(x, y, epochs=2)
        packed = str(self.folder / "packed.entity")
        net.save(packed, dtype="int8")
        small_net = loom.Network.load(packed)
        with loom.Trainer(small_net) as trainer:
            for kept in trainer.calibrate(loom.Dataset(x, y)):
                self.assertLessEqual(kept["error"], kept["plain"])
                self.assertIn("weight", kept["name"])


class Files(Scratch):
    def test_quantize_says_what_it_cost(self):
        net, path, out = small(), str(self.folder / "net.entity"), str(self.folder / "small.entity")
        net.save(path)
        works = []
        done = loom.quantize(path, out, "int8", progress=lambda work, a, b: works.append(work))
        self.assertEqual(done.format, "entity")
        self.assertEqual(done.bytes, os.path.getsize(out))
        self.assertIn("writing", works)
        cost = {t.name: t for t in done.tensors}["(0, 0, 0, 0)/weight"]
        before, after = (loom.Network.load(p).parameter(cost.name) for p in (path, out))
        self.assertEqual((cost.from_dtype, cost.to_dtype, cost.shape), ("float32", "int8", (8, 4)))
        self.assertAlmostEqual(cost.error, float(np.sqrt(((before - after) ** 2).mean())), places=6)
        rules = {"(0, 0, 0, 0)/*": "int4"}
        mixed = loom.convert(path, out, rules=rules, dtype="int8", measure=True)
        kinds = {t.to_dtype for t in mixed.tensors if "weight" in t.name}
        self.assertEqual(kinds, {"int4", "int8"})
        with self.assertRaises(loom.CancelledError):
            loom.convert(path, out, progress=lambda *_: False)
        self.assertGreater(files.verify_hashes(path), 0)

    def test_a_file_tells_what_is_in_it(self):
        net, path = small(), str(self.folder / "net.entity")
        net.save(path)
        with loom.ModelFile(path) as file:
            self.assertEqual((file.format, file.parameters, file.decoder), ("entity", 67, None))
            self.assertEqual([layer["type"] for layer in file.layers], ["Dense", "Dense"])
            name = next(t["name"] for t in file.tensors if tuple(t["shape"]) == (8, 4))
            self.assertTrue(same_bits(file.values(name), net.parameter("(0, 0, 0, 0)/weight")))
            self.assertEqual(len(file.hash(name)), 32)
            self.assertIsInstance(file.notes, list)
            with self.assertRaises(KeyError):
                file.values("no such tensor")

    def test_diff_measures_each_tensor(self):
        a, b = small(1), small(1)
        name = "(0, 0, 0, 0)/weight"
        weight = a.parameter(name).copy()
        weight[0, 0] += 0.5
        b.set_parameter(name, weight)
        paths = [str(self.folder / "a.entity"), str(self.folder / "b.entity")]
        a.save(paths[0])
        b.save(paths[1])
        found = {d.name: d for d in loom.diff(*paths)}
        self.assertEqual((found[name].different, found[name].equal), (1, False))
        self.assertAlmostEqual(found[name].max_abs, 0.5, places=6)
        self.assertTrue(all(d.equal for d in loom.diff(paths[0], paths[0])))

    def test_merge_is_the_weighted_mean(self):
        paths, nets = [str(self.folder / f"{i}.entity") for i in range(2)], [small(1), small(2)]
        for net, path in zip(nets, paths):
            net.save(path)
        out, name = str(self.folder / "both.entity"), "(0, 0, 0, 0)/weight"
        notes = []
        done = loom.merge(paths, out, weights=[3, 1], note=notes.append)
        self.assertEqual((done.method, done.models), ("linear", 2))
        mean = np.average([net.parameter(name) for net in nets], axis=0, weights=[3, 1])
        np.testing.assert_allclose(loom.Network.load(out).parameter(name), mean, atol=1e-6)
        moved = loom.merge(paths, out, method="task_arithmetic", base=paths[0], lambda_=2.0)
        self.assertEqual(moved.method, "task_arithmetic")
        one, two = (net.parameter(name) for net in nets)
        np.testing.assert_allclose(
            loom.Network.load(out).parameter(name), one + 2 * (two - one), atol=1e-5
        )
        with self.assertRaisesRegex(ValueError, "1 weights for 2 models"):
            loom.merge(paths, out, weights=[1])
        with self.assertRaisesRegex(ValueError, "dare"):
            loom.merge(paths, out, method="dar")

    @needs_program
    def test_the_program_merges_to_the_same_bytes(self):
        paths = [str(self.folder / f"{i}.entity") for i in range(2)]
        for seed, path in enumerate(paths):
            small(seed + 1).save(path)
        mine, other = str(self.folder / "mine.entity"), str(self.folder / "other.entity")
        loom.merge(paths, mine, weights=[3, 1])
        run(PROGRAM, "merge", *paths, "--weights", "3,1", "-o", other)
        self.assertEqual(Path(mine).read_bytes(), Path(other).read_bytes())


if __name__ == "__main__":
    unittest.main()
