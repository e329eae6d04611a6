"""ONNX files that run unchanged, from Python."""

import unittest

import loom
import numpy as np
from support import Scratch


class Evaluators(Scratch):
    def setUp(self):
        super().setUp()
        self.net = loom.Sequential(
            [loom.Dense(4, 8, activation="relu"), loom.Dense(8, 3)], input=4, seed=3
        )
        self.path = self.folder / "net.onnx"
        self.net.save(self.path)
        self.x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)

    def test_a_graph_gives_the_numbers_of_the_network(self):
        graph = loom.Evaluator(self.path)
        (name,) = [value.name for value in graph.inputs]
        self.assertEqual(graph.inputs[0].type, "float")
        wanted = self.net.predict(self.x)
        for inputs in ({name: self.x}, [self.x]):
            (made,) = graph.run(inputs).values()
            np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-6)

    def test_the_bytes_of_a_file_are_the_same_graph(self):
        graph, other = loom.Evaluator(self.path), loom.Evaluator(self.path.read_bytes())
        self.assertEqual((graph.inputs, graph.outputs), (other.inputs, other.outputs))

    def test_wrong_use_is_an_error(self):
        graph = loom.Evaluator(self.path)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "nothing"):
            graph.run({"nothing": self.x})
        with self.assertRaises(loom.InvalidArgumentError):
            graph.run([])
        with self.assertRaises(loom.NotFoundError):
            loom.Evaluator(self.folder / "absent.onnx")
        graph.close()
        self.assertEqual(repr(graph), "<loom.Evaluator, closed>")


if __name__ == "__main__":
    unittest.main()
