"""Populations, genomes, signatures and children from Python."""

import json
import os
import tempfile
import unittest

import loom
import numpy as np
from loom import evolution
from support import same_bits

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
Y = np.array([0, 1, 1, 0], np.float32)


def told_xor(seed=7, generations=60, **options):
    population = loom.Population(2, 1, size=100, seed=seed, **options)
    for _ in range(generations):
        error = ((population.run(X)[:, :, 0] - Y) ** 2).mean(axis=1)
        population.tell(1 / (1 + error))
    return population


class Populations(unittest.TestCase):
    def test_xor_is_learned_and_its_network_has_the_bits_of_the_genome(self):
        population = told_xor(generations=100)
        best = population.best()
        self.assertEqual(((best.run(X)[:, 0] > 0.5) == (Y > 0.5)).tolist(), [True] * 4)
        self.assertTrue(same_bits(best.network().predict(X), best.run(X)))
        self.assertEqual((best.inputs, best.outputs, best.recurrent), (2, 1, False))
        self.assertGreaterEqual(best.hidden, 1)
        self.assertEqual(len([c for c in best.json()["connections"]]) >= best.connections, True)
        self.assertEqual(population.generation, 100)
        self.assertEqual(population.best_fitness, max(g.best for g in population.history))
        self.assertEqual([g.evaluations for g in population.history[:2]], [100, 200])

    def test_equal_seeds_give_equal_genes_and_others_do_not(self):
        first, second, other = told_xor(generations=8), told_xor(generations=8), told_xor(8, 8)
        genes = [json.dumps(p.best().json()) for p in (first, second, other)]
        self.assertEqual(genes[0], genes[1])
        self.assertNotEqual(genes[0], genes[2])

    def test_each_option_changes_the_genes(self):
        def genes(**options):
            population = told_xor(generations=5, **options)
            return [json.dumps(genome.json()) for genome in population.ask()]

        plain = genes()
        for options in (
            {"recurrent": True}, {"connected": False}, {"output": "tanh"}, {"hidden": "relu"},
            {"slope": 2.0}, {"add_node": 0.5}, {"add_connection": 0.0}, {"weight_step": 0.5},
            {"threshold": 0.5}, {"hidden": ("relu", "tanh")}, {"change_weights": 0.1},
            {"new_weight": 0.9}, {"weight_limit": 0.5}, {"survivors": 0.9}, {"alone": 0.9},
            {"crossed_only": 0.9}, {"weight_difference": 4.0}, {"excess": 9.0}, {"disjoint": 9.0},
            {"enable": 1.0, "add_node": 0.5}, {"change_activation": 0.9, "hidden": ("relu", "tanh"),
                                               "add_node": 0.5},
        ):  # fmt: skip
            with self.subTest(**options):
                self.assertNotEqual(genes(**options), plain)

    def test_a_population_that_was_saved_goes_on_with_the_same_bits(self):
        population = told_xor(generations=3, patience=4, hidden=["tanh", "relu"])
        self.assertEqual((population.inputs, population.outputs, population.seed), (2, 1, 7))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "population.json")
            population.save(path)
            again = loom.Population.load(path)
        for each in (population, again):
            error = ((each.run(X)[:, :, 0] - Y) ** 2).mean(axis=1)
            each.tell(1 / (1 + error))
        genes = [[json.dumps(g.json()) for g in each.ask()] for each in (population, again)]
        self.assertEqual(genes[0], genes[1])

    def test_ask_gives_the_genomes_that_run_runs(self):
        population = told_xor(generations=3)
        outputs = population.run(X)
        for genome, wanted in zip(population.ask(), outputs):
            self.assertTrue(same_bits(genome.run(X), wanted))
        self.assertTrue(same_bits(population[-1].run(X), outputs[-1]))

    def test_what_is_wrong_is_told_by_name(self):
        population = loom.Population(2, 1, size=10)
        for call, words in (
            (lambda: loom.Population(0, 1), "inputs is 0, must be 1 to 4096"),
            (lambda: loom.Population(2, 1, size=1), "population is 1, must be 2 to"),
            (lambda: loom.Population(2, 1, hidden=["relu", "rel"]), "activation 'rel'"),
            (lambda: loom.Population(2, 1, output="sigmoidal"), "sigmoidal"),
            (lambda: population.tell([1.0]), "1"),
            (lambda: population.run(np.zeros((1, 3), np.float32)), "rows, 2"),
            (population.best, "before the first call of tell"),
        ):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                call()
        with self.assertRaises(IndexError):
            population[10]
        with self.assertRaises(loom.UnsupportedError):
            loom.Population(2, 1, recurrent=True, size=4)[0].network()


def small(seed):
    layers = [loom.Dense(4, 6, activation="relu"), loom.Dense(6, 3)]
    return loom.Sequential(layers, input=4, seed=seed)


class Signatures(unittest.TestCase):
    def test_a_network_is_like_itself_and_less_like_another(self):
        a, b = small(1), small(2)
        self.assertAlmostEqual(a.compare_dna(a)["overall_overlap"], 1.0)
        self.assertLess(a.compare_dna(b)["overall_overlap"], 0.99)
        for mode in ("functional", "strict", "aligned", "permutation"):
            self.assertIn("layer_overlaps", evolution.compare_dna(a, b, mode=mode))
        with self.assertRaisesRegex(ValueError, "there is no mode 'same'"):
            a.compare_dna(b, mode="same")

    def test_a_signature_is_the_weights_as_a_vector_of_length_1(self):
        net = small(1)
        found = net.dna((0, 0, 0, 0))
        self.assertAlmostEqual(float((found**2).sum()), 1.0)
        names = [name for name, _, _ in net.parameters() if name.startswith("(0, 0, 0, 0)/")]
        weights = np.concatenate([np.ravel(net.parameter(name)) for name in names])
        self.assertEqual(found.size, weights.size)
        lengths = np.sort(np.abs(weights)) / np.linalg.norm(weights)
        np.testing.assert_allclose(np.sort(np.abs(found)), lengths, atol=1e-6)
        with self.assertRaises(loom.NotFoundError):
            net.dna((3, 0, 0, 0))

    def test_a_child_has_the_weights_of_both(self):
        a, b = small(1), small(2)
        name = "(0, 0, 0, 0)/weight"
        one, two = a.parameter(name), b.parameter(name)
        child = loom.splice(a, b, alpha=0.25).parameter(name)
        np.testing.assert_allclose(child, 0.75 * one + 0.25 * two, atol=1e-6)
        mixed = loom.splice(a, b, mode="uniform", seed=3).parameter(name)
        self.assertTrue(np.all((mixed == one) | (mixed == two)))
        self.assertTrue(np.any(mixed == one) and np.any(mixed == two))
        point = loom.splice(a, b, mode="point", split=0.5).parameter(name)
        self.assertTrue(np.all((point == one) | (point == two)))
        fitter = loom.splice(a, b, fitness=(3.0, 1.0)).parameter(name)
        self.assertLess(abs(fitter - one).sum(), abs(fitter - two).sum())
        law = loom.splice(a, b, fitness=(3.0, 1.0), law="original").parameter(name)
        same = loom.splice(a, b, fitness=(3.0, 1.0), original=True).parameter(name)
        np.testing.assert_array_equal(law, same)
        self.assertTrue(np.any(law != fitter))
        with self.assertRaisesRegex(ValueError, "no law 'fit'"):
            loom.splice(a, b, law="fit")


class Samples(unittest.TestCase):
    def test_fitness_on_samples_is_the_formula_of_the_answers(self):
        population = loom.Population(2, 1, size=10, seed=3)
        fitness = loom.SampleFitness(loom.Dataset(X, Y[:, None]), 2, 1)
        for genome in population.ask():
            error = float(((genome.run(X)[:, 0] - Y) ** 2).mean())
            self.assertAlmostEqual(fitness(genome), 1 / (1 + error), places=6)
        population.tell([fitness(genome) for genome in population.ask()])
        self.assertGreater(population.best_fitness, 0)

    def test_a_network_has_the_normalization_and_the_classes(self):
        x, labels = X * 10 + 5, np.array(["a", "b", "b", "a"])
        data = loom.Dataset(x, np.unique(labels, return_inverse=True)[1].astype(np.int32))
        fitness = loom.SampleFitness(data, 2, 2, normalize="standard")
        genome = loom.Population(2, 2, size=4, seed=1)[0]
        described = fitness.json(genome)
        np.testing.assert_allclose(described["input_shift"], x.mean(0))
        self.assertTrue(fitness.network(genome).info["normalizes"])

    def test_what_cannot_be_judged_is_an_error(self):
        with self.assertRaises(loom.InvalidArgumentError):
            loom.SampleFitness(loom.Dataset(X, Y[:, None]), 3, 1)
        with self.assertRaises(ValueError):
            loom.SampleFitness(loom.Dataset(X, Y[:, None]), 2, 1, normalize="other")

    def test_signatures_are_as_alike_as_their_cosine(self):
        self.assertAlmostEqual(loom.dna_similarity([1.0, 0.0], [1.0, 1.0]), 0.5**0.5)
        self.assertEqual(loom.dna_similarity([0.0], [0.0]), 1.0)
        self.assertEqual(loom.dna_similarity([0.0], [1.0]), 0.0)
        with self.assertRaises(loom.InvalidArgumentError):
            loom.dna_similarity([1.0], [1.0, 2.0])


if __name__ == "__main__":
    unittest.main()
