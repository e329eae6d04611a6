"""Proofs in the files of absorbed networks: repeated, and refused where anything was changed."""

import contextlib
import io
import subprocess
import sys

import loom
import numpy as np
from loom.bridge import verify
from loom.bridge.proof import digest, prove, verify_proof
from support import PROGRAM, ROOT, Scratch, needs_program

X = np.random.default_rng(7).normal(size=(6, 4)).astype(np.float32)


def network(seed=1):
    return loom.Sequential(
        [loom.Dense(4, 5, activation="tanh"), loom.Dense(5, 2)], input=4, seed=seed
    )


def proven(net, **how):
    """As absorb() does it: what the source computed is the engine's own, a little off."""
    how = {"abs_tol": 1e-5, "rel_tol": 1e-4, "fresh_process": False, **how}
    return prove(net, [X], [net.predict(X) + np.float32(1e-6)], "a test: net", **how)


class Proofs(Scratch):
    def saved(self, net, name="net.entity"):
        path = self.folder / name
        net.save(path)
        return path

    def test_a_file_repeats_what_was_proven(self):
        net = network()
        self.assertIsNone(net.proof)
        self.assertTrue(proven(net, fresh_process=True).passed)
        path = self.saved(net)
        said = loom.verify_proof(path)
        self.assertTrue(said.passed)
        self.assertEqual(said.rungs, ("native", "engine", "file", "wheel"))
        self.assertEqual(said.report["outputs_sha256"], digest([net.predict(X)]))
        self.assertEqual(said.report["inputs_sha256"], digest([X]))
        self.assertIn("the proof holds: a test: net; rungs native, engine, file, wheel", str(said))
        self.assertEqual(loom.load(path).proof.report, net.proof.report)

    def test_an_output_beyond_the_tolerance_is_told_with_its_place(self):
        net = network()
        wanted = net.predict(X)
        wanted[2, 1] += 0.25
        for value in (wanted[2, 1], np.nan):
            wanted[2, 1] = value
            said = prove(net, [X], [wanted], "a test", 1e-5, 1e-4, False)
            self.assertFalse(said.passed)
            self.assertIn("value 5 of output 0 is beyond the tolerance", said.problem)
            self.assertEqual(said.report["outputs"][0]["first_beyond"], 5)
            self.assertIsNone(net.proof)
        self.assertIn("[6, 1]", prove(net, [X], [wanted[:, :1]], "", 1e9, 1, False).problem)
        self.assertIn("2 outputs", prove(net, [X], [wanted, wanted], "", 1e9, 1, False).problem)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "2 inputs"):
            prove(net, [X, X], [wanted], "", 1e9, 1, False)

    def test_figures_are_those_of_numpy(self):
        net = network()
        got = net.predict(X).astype(np.float64)
        wanted = np.float32(got * 1.00001 + 1e-6).astype(np.float64)
        figures = prove(net, [X], [wanted], "", 1e-3, 0, False).report["outputs"][0]
        far = np.abs(wanted - got)
        self.assertAlmostEqual(figures["max_abs"], far.max(), places=12)
        self.assertAlmostEqual(figures["max_rel"], (far / np.abs(wanted)).max(), places=12)
        next_up = np.nextafter(net.predict(X), np.float32(9))
        one = prove(net, [X], [next_up], "", 1e-3, 0, False).report["outputs"][0]
        self.assertEqual(one["max_ulp"], 1)

    def test_changed_weights_have_no_proof(self):
        changes = {
            "set_parameter": lambda n: n.set_parameter("(0, 0, 1, 0)/bias", np.ones(2, np.float32)),
            "fit": lambda n: n.fit(X, X[:, :2], loss="mse", epochs=1),
        }
        for name, change in changes.items():
            with self.subTest(name):
                net = network()
                proven(net)
                change(net)
                self.assertIsNone(net.proof)
                with self.assertRaisesRegex(loom.NotFoundError, "net.entity.*carries no proof"):
                    verify_proof(self.saved(net))

    def test_other_number_types_leave_the_proof_out(self):
        net = network()
        proven(net)
        net.save(self.folder / "small.entity", dtype="int8")
        self.assertIsNone(loom.load(self.folder / "small.entity").proof)
        self.assertIsNone(loom.load(self.saved(net), dtype="int8").proof)
        self.assertIsNotNone(loom.load(self.saved(net)).proof)

    def test_no_changed_byte_passes(self):
        net = network()
        proven(net)
        path = self.saved(net)
        whole = path.read_bytes()
        places = [*range(0, len(whole), 61), len(whole) - 1]
        for place in places:
            with self.subTest(place=place):
                damaged = bytearray(whole)
                damaged[place] ^= 0x10
                path.write_bytes(damaged)
                with self.assertRaises((loom.BadFileError, loom.UnsupportedError)):
                    verify_proof(path)

    def test_the_module_and_the_program_say_the_same(self):
        net = network()
        proven(net)
        good = self.saved(net)
        bare = self.saved(network(2), "bare.entity")
        for path, code, words in ((good, 0, "the proof holds"), (bare, 1, "carries no proof")):
            with self.subTest(path.name):
                out, err = io.StringIO(), io.StringIO()
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                    self.assertEqual(verify.main([str(path)]), code)
                self.assertIn(words, out.getvalue() + err.getvalue())
        again = subprocess.run(
            [sys.executable, "-m", "loom.bridge.verify", str(good)], capture_output=True, text=True
        )
        self.assertEqual((again.returncode, again.stdout.count("\n")), (0, 1))

    def test_recorded_networks_of_every_planet_hold_without_their_frameworks(self):
        files = sorted((ROOT / "tests" / "data" / "absorbed").glob("*.entity"))
        planets = {f.name.split("_")[0] for f in files}
        self.assertLessEqual({"sklearn", "torch", "jax", "keras"}, planets)
        for path in files:
            with self.subTest(path.name):
                said = loom.verify_proof(path)
                self.assertTrue(said.passed, str(said))
                self.assertEqual(said.rungs, ("native", "engine", "file", "wheel"))

    @needs_program
    def test_the_program_repeats_it(self):
        def ask(path, *more):
            return subprocess.run(
                [PROGRAM, "verify", "proof", str(path), *more], capture_output=True, text=True
            )

        net = network()
        proven(net)
        good = self.saved(net)
        said = ask(good, "--threads", "1", "--isa", "scalar")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(said.stdout, f"{good}: {loom.verify_proof(good)}\n")
        missing = ask(self.saved(network(), "bare.entity"))
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("carries no proof", missing.stderr)
        self.assertIn('"holds":true', ask(good, "--json").stdout)
