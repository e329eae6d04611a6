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


if __name__ == "__main__":
    unittest.main()
