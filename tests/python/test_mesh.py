"""Meshes: ports of Input layers and of the options, links with delays, and what each cell gives."""

import json
import unittest

import loom
import numpy as np
from support import same_bits

GRID = {
    "loom": 1,
    "grid": [1, 1, 4, 1],
    "input": [3],
    "cells": [
        {"at": [0, 0, 0, 0], "type": "Dense", "in": 3, "out": 2, "activation": "tanh"},
        {"at": [0, 0, 1, 0], "type": "Input", "input": "eye", "shape": [5]},
        {"at": [0, 0, 2, 0], "type": "Dense", "in": 5, "out": 2},
        {"at": [0, 0, 3, 0], "type": "Residual", "link": {"from": [0, 0, 0, 0]}},
    ],
}
FIRST, LAST = (0, 0, 0, 0), (0, 0, 3, 0)


class Meshes(unittest.TestCase):
    def setUp(self):
        self.net = loom.Network.load(json.dumps(GRID).encode(), name="net.json")
        random = np.random.default_rng(3)
        self.x = random.normal(0, 1, (9, 3)).astype(np.float32)
        self.eye = random.normal(0, 1, (9, 5)).astype(np.float32)

    def test_an_input_layer_is_a_port(self):
        with self.net.session(max_batch=9) as session:
            (want,) = session.run({"input": self.x, "eye": self.eye}).values()
        # As many ticks for the first cell as for the way of `eye`.
        mesh = loom.Mesh(self.net, links=[loom.MeshLink(FIRST, delay=2)])
        self.assertEqual(mesh.latency, 3)
        got = np.concatenate(mesh.run(input=self.x, eye=self.eye))
        self.assertTrue(same_bits(got[2:], np.asarray(want)[:-2]))
        self.assertEqual((mesh.ticks, mesh.stale), (9, 0))
        self.assertTrue(same_bits(mesh.output(LAST), mesh.output()))
        mesh.reset()
        self.assertEqual(mesh.ticks, 0)

    def test_other_ports_are_linked(self):
        mesh = loom.Mesh(
            self.net, ports={"ear": 3}, links=[loom.MeshLink(FIRST, port="ear")], batch=2
        )
        mesh.set(self.x[:2], "ear")
        mesh.tick()
        want = np.tanh(self.x[:2] @ np.asarray(self.net.parameter("(0, 0, 0, 0)/weight")).T)
        np.testing.assert_allclose(mesh.output(FIRST), want, atol=1e-5)

    def test_run_tells_how_active_cells_were(self):
        mesh = loom.Mesh(self.net, links=[loom.MeshLink(FIRST, delay=2)], activity=True)
        one, apart = [], loom.Mesh(self.net, links=[loom.MeshLink(FIRST, delay=2)])
        for i in range(9):
            one.append(apart.push(input=self.x[i : i + 1], eye=self.eye[i : i + 1]))
        made = mesh.run(input=self.x, eye=self.eye)
        self.assertTrue(same_bits(np.concatenate(made), np.concatenate(one)))
        cells = mesh.cells()
        self.assertEqual([c.at for c in cells][0], FIRST)
        self.assertEqual([c.layer for c in cells], ["Dense", "Input", "Dense", "Residual"])
        self.assertEqual([c.output for c in cells], [(2,), (5,), (2,), (2,)])
        active = mesh.activity()
        self.assertEqual(active.shape, (9, 4))
        np.testing.assert_allclose(active[-1, 3], np.abs(made[-1]).mean(), rtol=1e-6)
        for cell, column in zip(cells, active.T):
            self.assertEqual(int(np.isnan(column).sum()), cell.first_tick - 1)
        self.assertTrue(mesh.holds(LAST))
        self.assertFalse(loom.Mesh(self.net).holds(LAST))
        with self.assertRaises(ValueError):
            mesh.holds((9, 0, 0, 0))
        with self.assertRaisesRegex(ValueError, "activity"):
            apart.activity()

    def test_several_streams_run_side_by_side(self):
        net = loom.Sequential([loom.Dense(3, 2, activation="tanh")], input=3)
        mesh = loom.Mesh(net, batch=2)
        both = np.stack([self.x[:4], self.x[4:8]], axis=1)
        made = mesh.run(input=both)
        self.assertEqual([m.shape for m in made], [(2, 2)] * 4)
        self.assertTrue(same_bits(np.stack(made)[:, 0], np.asarray(net.predict(self.x[:4]))))

    def test_what_does_not_fit_is_refused_by_name(self):
        mesh = loom.Mesh(self.net)
        for port, x, words in (("ear", self.x[:1], "input, eye"), ("eye", self.x[:1], "'eye'")):
            with self.assertRaisesRegex(loom.InvalidArgumentError, words):
                mesh.set(x, port)
        with self.assertRaisesRegex(loom.NotFoundError, r"\(9, 0, 0, 0\)"):
            mesh.output((9, 0, 0, 0))
        with self.assertRaisesRegex(loom.InvalidArgumentError, "ear"):
            loom.Mesh(self.net, links=[loom.MeshLink(FIRST, port="ear")])
        with self.assertRaises(ValueError):
            mesh.run(input=self.x, eye=self.eye[:3])


STREAM = np.sin(np.arange(160, dtype=np.float32) / 3).reshape(-1, 1)


def weights(**given):
    """The report of a small network after an epoch as a mesh."""
    net = loom.Sequential(
        [loom.Dense(1, 6, activation="tanh"), loom.Dense(6, 1)], input=1, seed=3
    )
    with loom.MeshTrainer(net, **given) as trainer:
        trainer.fit(loom.Dataset(STREAM[:-1], STREAM[1:]), epochs=1)
    return [np.asarray(net.parameter(name)) for name, _, _ in net.parameters()]


class Training(unittest.TestCase):
    def test_a_mesh_learns_a_stream_and_tells_its_epochs(self):
        net = loom.Sequential(
            [loom.Dense(1, 8, activation="tanh"), loom.Dense(8, 1)], input=1, seed=3
        )
        windows, seen = [], []
        with loom.MeshTrainer(net, window=12, optimizer=loom.Adam(0.02)) as trainer:
            told = trainer.fit(
                loom.Dataset(STREAM[:-1], STREAM[1:]), epochs=6, on_epoch=seen.append,
                on_window=lambda done, total: windows.append((done, total)),
            )  # fmt: skip
        self.assertEqual(told, seen)
        self.assertEqual([e.number for e in told], [1, 2, 3, 4, 5, 6])
        self.assertLess(told[-1].loss, 0.7 * told[0].loss)
        self.assertIsNone(told[0].accuracy)
        self.assertEqual(windows[-1][0], windows[-1][1])

    def test_each_option_changes_what_is_learned(self):
        plain = weights()
        self.assertTrue(all(map(same_bits, weights(), plain)))
        for given in (
            {"window": 5}, {"stride": 3}, {"loss": "mae"}, {"optimizer": "sgd"}, {"rate": 0.1},
            {"clip": "norm", "clip_limit": 1e-3}, {"rule": "dfa"}, {"batch": 2},
            {"links": [loom.MeshLink((0, 0, 0, 0), delay=2)]},
        ):  # fmt: skip
            with self.subTest(**given):
                self.assertFalse(all(map(same_bits, weights(**given), plain)))

    def test_what_is_wrong_is_told_by_name(self):
        for given, words in (
            ({"window": 0}, "window is 0, must be 1 or more"),
            ({"rule": "dtp"}, "dtp"),
            ({"optimizer": "lbfgs"}, "lbfgs"),
            ({"links": [loom.MeshLink((0, 0, 0, 0), port="ear")]}, "ear"),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                weights(**given)
        with self.assertWarnsRegex(UserWarning, "rule_beta has no effect"):
            weights(rule_beta=0.3)

    def test_a_callback_ends_it(self):
        net = loom.Sequential([loom.Dense(1, 1)], input=1)
        data = loom.Dataset(STREAM[:-1], STREAM[1:])
        with loom.MeshTrainer(net) as trainer:
            for given in ({"on_window": lambda *_: False}, {"on_epoch": lambda _: False}):
                with self.assertRaises(loom.CancelledError):
                    trainer.fit(data, epochs=3, **given)


if __name__ == "__main__":
    unittest.main()
