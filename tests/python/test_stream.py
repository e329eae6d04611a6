"""Streams of absorbed models: what `loom absorb` makes of one, and what it refuses."""

import hashlib
import importlib.util
import json
import struct
import subprocess
import unittest
import warnings

import loom
import numpy as np
from loom.bridge import stream
from support import PROGRAM, Scratch, needs_program

warnings.simplefilter("ignore")
X = np.random.default_rng(5).normal(size=(20, 4)).astype(np.float32)


def model():
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((6,), max_iter=30, random_state=0).fit(X, X[:, 0] > X[:, 1])


def parts(data):
    """The manifest and the payload of a stream."""
    length = struct.unpack("<Q", data[:8])[0]
    begin = -(-(8 + length) // 64) * 64
    return json.loads(data[8 : 8 + length]), data[begin:-32]


def sealed(manifest, payload):
    text = json.dumps(manifest).encode()
    head = struct.pack("<Q", len(text)) + text
    body = head + bytes(-len(head) % 64) + payload
    return body + hashlib.sha256(body).digest()


@needs_program
@unittest.skipIf(importlib.util.find_spec("sklearn") is None, "scikit-learn is not installed")
class Streams(Scratch):
    def absorb(self, data, *more):
        ran = subprocess.run([PROGRAM, "absorb", *more], input=data, capture_output=True)
        return ran.returncode, ran.stdout, ran.stderr.decode()

    def test_a_stream_becomes_the_file_that_absorb_makes(self):
        fitted = model()
        code, entity, said = self.absorb(stream(fitted, X))
        self.assertEqual(code, 0, said)
        self.assertIn("the proof holds", said)
        path = self.folder / "net.entity"
        path.write_bytes(entity)
        self.assertTrue(loom.verify_proof(path).passed)
        there = loom.Network.load(path)
        here = loom.absorb(fitted, X, fresh_process=False)
        np.testing.assert_array_equal(there.predict(X[:7]), here.predict(X[:7]))

    def test_files_in_and_out_and_the_proof_as_json(self):
        source, to = self.folder / "m.stream", self.folder / "net.entity"
        source.write_bytes(stream(model(), X))
        code, out, said = self.absorb(b"", str(source), "-o", str(to), "--json")
        self.assertEqual(code, 0, said)
        self.assertTrue(json.loads(out)["holds"])
        self.assertTrue(loom.verify_proof(to).passed)

    def test_every_damage_is_one_line_and_no_file(self):
        data = stream(model(), X)
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        cut = [data[:n] for n in (0, 7, 8, 100, len(data) - 40, len(data) - 1)]
        for bad in [*cut, bytes(changed), b"\xff" * 200]:
            code, out, said = self.absorb(bad)
            self.assertEqual((code, out, said.count("\n")), (3, b"", 1), said)

    def test_manifests_that_do_not_fit_are_refused_by_name(self):
        manifest, payload = parts(stream(model(), X))

        def said(change):
            one = json.loads(json.dumps(manifest))
            change(one)
            code, out, line = self.absorb(sealed(one, payload))
            self.assertEqual(out, b"", line)
            return code, line

        def store(m):
            m["graph"]["store"]["offset"] = len(payload) - 1

        def far(m):
            m["graph"]["store"]["length"] = 2**63 - 1

        def shape(m):
            m["fixture"]["inputs"][0]["shape"] = [2**40, 2**40]

        for change, code, words in [
            (lambda m: m.update(schema="bridge.stream/9"), 4, "bridge.stream/9"),
            (lambda m: m["graph"].update(format="pickle"), 4, "pickle"),
            (lambda m: m.pop("graph"), 3, "'graph'"),
            (lambda m: m["fixture"].update(inputs=[]), 3, "inputs"),
            (lambda m: m["fixture"]["tolerance"].update(abs=-1.0), 3, "'abs'"),
            (lambda m: m["graph"].update(sha256="0" * 64), 3, "damaged"),
            (store, 3, "the graph"),
            (far, 3, "the graph"),
            (shape, 3, "inputs 0"),
        ]:
            got, line = said(change)
            self.assertEqual(got, code, line)
            self.assertIn(words, line)

    def test_what_the_engine_computes_otherwise_is_exit_5_and_no_file(self):
        manifest, payload = parts(stream(model(), X))
        expected = manifest["fixture"]["expected"][0]
        at, size = expected["store"]["offset"], expected["store"]["length"]
        other = np.frombuffer(payload[at : at + size], "<f4") + np.float32(0.25)
        payload = payload[:at] + other.tobytes() + payload[at + size :]
        expected["sha256"] = hashlib.sha256(other.tobytes()).hexdigest()
        code, out, said = self.absorb(sealed(manifest, payload))
        self.assertEqual((code, out), (5, b""), said)
        self.assertIn("NOT hold", said)


if __name__ == "__main__":
    unittest.main()
