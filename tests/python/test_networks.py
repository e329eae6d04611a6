"""Networks, sessions, layers and arrays, as a person uses them."""

import copy
import json
import pickle
import unittest

import loom
import numpy as np
from loom import _ffi, layers
from loom._library import lib, text_from
from random_networks import random_network
from support import STORIES, Scratch, points, same_bits


def small(seed=7, **options):
    layers = [loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)]
    return loom.Sequential(layers, input=4, seed=seed, **options)


class Networks(Scratch):
    def test_a_network_gives_what_its_formula_says(self):
        net = loom.Sequential([loom.Dense(2, 1)], input=(2,))
        net.load_state_dict({"(0, 0, 0, 0)/weight": [[2.0, -3.0]], "(0, 0, 0, 0)/bias": [0.5]})
        self.assertEqual(net.predict([[1.0, 1.0], [4.0, 2.0]]).tolist(), [[-0.5], [2.5]])
        with self.assertRaises(KeyError):
            net.load_state_dict({})

    def test_what_is_saved_is_what_was_there(self):
        x, _ = points()
        for ending in ("entity", "json", "npz", "safetensors", "onnx"):
            with self.subTest(ending):
                net, file = small(), self.folder / f"net.{ending}"
                seen = []
                net.save(file, progress=lambda done, total: seen.append((done, total)))
                back = loom.Network.load(file)
                self.assertTrue(same_bits(net.predict(x), back.predict(x)))
        net.save(self.folder / "alone.json", weights=False)
        both = loom.Network.load(
            self.folder / "alone.json", weights=self.folder / "net.safetensors", seed=99
        )
        self.assertTrue(same_bits(net.predict(x), both.predict(x)))
        net.save(self.folder / "small.entity", dtype="int8")
        self.assertEqual(loom.Network.load(self.folder / "small.entity").info["dtype"], "int8")

    def test_bytes_are_files(self):
        x, _ = points()
        for form in loom._ffi.NETWORK_FORMAT:
            with self.subTest(form):
                net, file = small(), self.folder / f"net.{form}"
                net.save(file)
                content = net.save_bytes(form)
                self.assertEqual(content, file.read_bytes())
                for given in (content, bytearray(content), memoryview(content)):
                    back = loom.load(given, name=f"net.{form}")
                    self.assertTrue(same_bits(net.predict(x), back.predict(x)))
                with self.assertRaisesRegex(loom.LoomError, "cut"):
                    loom.Network.load(content[: len(content) // 2], name=f"cut.{form}")
        with self.assertRaises(loom.CancelledError):
            loom.Network.load(small().save_bytes(), progress=lambda *_: False)
        with self.assertRaisesRegex(ValueError, "choose from entity, json"):
            small().save_bytes("gguf")
        self.assertIsInstance(loom.load(STORIES.read_bytes()), loom.LLM)
        self.assertIsInstance(loom.load(STORIES), loom.LLM)

    def test_an_engine_tells_what_it_does_and_holds(self):
        lines = []
        engine = loom.Engine(threads=1, log=lambda level, line: lines.append((level, line)))
        self.assertEqual(lines[0][0], "debug")
        self.assertEqual(engine.memory["total"], 0)
        content = small().save_bytes()
        net = loom.Network.load(content, engine=engine, name="mine")
        self.assertIn("mine: a network of 131 parameters", lines[-1][1])
        self.assertGreaterEqual(engine.memory["weights"], 131 * 4)
        with net.session() as session:
            self.assertEqual(engine.memory["sessions"], session.bytes)
        self.assertEqual(engine.memory["sessions"], 0)
        net.close()
        self.assertEqual(engine.memory["total"], 0)
        self.assertGreater(engine.memory["peak"], 0)

    def test_words_of_an_engine_are_checked(self):
        self.assertEqual(loom.Engine(activations="F32").info["activations"], "f32")
        for option in ("device", "activations", "gpu_tuning"):
            with self.subTest(option), self.assertRaisesRegex(ValueError, "choose from"):
                loom.Engine(**{option: "magic"})

    def test_seeds_and_types_make_other_networks(self):
        x, _ = points()
        self.assertTrue(same_bits(small(0).predict(x), small(0).predict(x)))
        self.assertFalse(same_bits(small(0).predict(x), small(1).predict(x)))
        self.assertFalse(same_bits(small(0).predict(x), small(0, dtype="int8").predict(x)))

    def test_pickles_and_copies_are_networks_of_their_own(self):
        x, y = points()
        net = small()
        for other in (pickle.loads(pickle.dumps(net)), copy.deepcopy(net)):
            self.assertTrue(same_bits(net.predict(x), other.predict(x)))
            other.fit(x, y, epochs=1)
            self.assertFalse(same_bits(net.predict(x), other.predict(x)))
        with self.assertRaises(TypeError):
            pickle.dumps(net.session())

    def test_batches_sessions_and_engines_change_no_bit(self):
        x, _ = points()
        net = small()
        expected = net.predict(x)
        for batch in (1, 7, 64, 240):
            self.assertTrue(same_bits(net.predict(x, batch=batch), expected))
        with net.session(max_batch=16) as session:
            out = np.zeros((240, 3), np.float32)
            self.assertIs(session.run(x, out), out)
            self.assertTrue(same_bits(out, expected))
            cells = list(session.cells(x))
            self.assertEqual([(at, kind) for at, kind, _ in cells],
                             [((0, 0, 0, 0), "Dense"), ((0, 0, 1, 0), "Dense")])  # fmt: skip
            self.assertTrue(same_bits(cells[1][2], expected))
        for threads, isa in ((1, "scalar"), (2, None)):
            other = loom.Network.from_json(
                net.json(), seed=7, engine=loom.Engine(threads, isa=isa)
            )
            self.assertTrue(same_bits(other.predict(x), expected))

    def test_a_network_of_several_inputs_and_outputs_takes_and_gives_dicts(self):
        g = loom.Graph()
        state = g.add(loom.Input("state", shape=3), g.input, name="given")
        total = g.add(loom.Binary("add"), g.input, state, name="total")
        twice = g.add(loom.Binary("add"), total, total, name="twice")
        net = loom.Sequential([g.output(twice, total)], input=3)
        self.assertEqual([p.name for p in net.inputs], ["input", "state"])
        self.assertEqual(net.inputs[1].shape, (3,))
        self.assertEqual([p.name for p in net.outputs], ["twice", "total"])
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        with net.session(max_batch=2) as session:
            out = session.run({"state": 10 * x, "input": x})
            self.assertEqual(sorted(out), ["total", "twice"])
            np.testing.assert_array_equal(out["total"], 11 * x)
            np.testing.assert_array_equal(out["twice"], 22 * x)
            with self.assertRaisesRegex(loom.InvalidArgumentError, "input, state"):
                session.run({"input": x})
            with self.assertRaisesRegex(loom.InvalidArgumentError, "takes 2 inputs"):
                session.run(x)

    def test_arrays_like_those_before_take_a_shorter_way_to_the_same_bits(self):
        net, random = small(), np.random.default_rng(3)
        with net.session(max_batch=4) as session:
            for case in range(300):
                n, dtype = int(random.integers(1, 4)), random.choice(["f4", "f8", "i2", ">f4"])
                x = (random.normal(size=(n, 8)) * 9).astype(dtype)
                x = x[:, ::2] if random.random() < 0.3 else np.ascontiguousarray(x[:, :4])
                x.flags.writeable = random.random() < 0.7
                places = [None, np.empty((n, 3), "f4"), np.empty((n, 6), "f4")[:, ::2]]
                out = places[int(random.integers(3))]
                if x.dtype.byteorder == ">" or (out is not None and not out.flags.c_contiguous):
                    with self.assertRaises((TypeError, loom.InvalidArgumentError)):
                        session.run(x, out)
                    continue
                with self.subTest(case=case, dtype=dtype, strides=x.strides):
                    y = session.run(x, out)
                    self.assertTrue(out is None or y is out)
                    self.assertTrue(same_bits(np.ascontiguousarray(y), net.predict(x)))
            x = np.ones((2, 4), np.float32)
            kept = [session.run(x * i) for i in range(3)]
            self.assertTrue(all(same_bits(y, net.predict(x * i)) for i, y in enumerate(kept)))
            with self.assertRaises(ValueError):  # may not be written
                fixed = np.empty((2, 3), np.float32)
                fixed.flags.writeable = False
                session.run(x, fixed)
        with self.assertRaises(ValueError):  # closed
            session.run(x)

    def test_a_stateful_session_goes_on(self):
        net = loom.Sequential([loom.Rnn(2, 3), loom.Dense(3, 1)], input=(4, 2))
        x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 4, 2)
        whole = net.predict(x)
        with net.session(stateful=True) as session:
            parts = [session.run(x[:, i : i + 1]) for i in range(4)]
            self.assertEqual(session.position, 4)
            self.assertTrue(same_bits(np.concatenate(parts, axis=1), whole))
            session.reset()
            self.assertTrue(same_bits(session.run(x[:, :1]), parts[0]))

    def test_states_are_handed_out_and_taken_back(self):
        net = loom.Sequential([loom.Lstm(2, 3), loom.Gru(3, 2)], input=(4, 2))
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 4, 2)
        whole = net.predict(x)
        with net.session(max_batch=2, stateful=True) as session:
            session.run(x[:, :2])
            states = session.states
            self.assertEqual([s.shape for s in states], [(2, 6), (2, 2)])
            session.reset()
            self.assertEqual(float(np.abs(session.states[0]).max()), 0)
            session.states = states
            self.assertTrue(same_bits(session.run(x[:, 2:]), whole[:, 2:]))
            with self.assertRaisesRegex(loom.InvalidArgumentError, "1 states are given"):
                session.states = states[:1]

    def test_samples_of_a_batch_have_lengths(self):
        net = loom.Sequential(
            [loom.Lstm(2, 3, return_sequence=False), loom.Dense(3, 2)], input=(5, 2)
        )
        x = np.linspace(-1, 1, 30, dtype=np.float32).reshape(3, 5, 2)
        lengths = [5, 1, 3]
        with net.session(max_batch=2, lengths=True) as session, net.session() as single:
            y = session.run(x, lengths=lengths)
            for i, n in enumerate(lengths):
                self.assertTrue(same_bits(y[i : i + 1], single.run(x[i : i + 1, :n])))
            with self.assertRaisesRegex(loom.InvalidArgumentError, "2 lengths for 3 samples"):
                session.run(x, lengths=[1, 2])
        data = loom.Dataset(x, np.array([0, 1, 0]), lengths=lengths)
        noisy = x.copy()
        noisy[1, 1:] = 1e6
        for values in (x, noisy):
            again = loom.Dataset(values, np.array([0, 1, 0]), lengths=lengths)
            self.assertTrue(same_bits(again.x, data.x))

    def test_a_dict_of_inputs_trains_a_network_of_several(self):
        description = {
            "loom": 1,
            "input": [2],
            "layers": [
                {
                    "type": "Graph",
                    "nodes": [
                        {"name": "b", "type": "Input", "from": "input", "input": "b", "shape": [3]},
                        {"name": "both", "from": ["input", "b"], "type": "Concat", "axis": 1},
                        {"name": "y", "type": "Dense", "in": 5, "out": 1},
                    ],
                    "outputs": "y",
                }
            ],
        }
        net = loom.Network.from_json(json.dumps(description))
        draw = np.random.default_rng(2)
        a = draw.standard_normal((40, 2)).astype(np.float32)
        b = draw.standard_normal((40, 3)).astype(np.float32)
        y = (a.sum(1, keepdims=True) - b.sum(1, keepdims=True)).astype(np.float32)
        trainer = loom.Trainer(net, batch=8, optimizer=loom.Adam(0.05))
        history = trainer.fit(loom.Dataset({"input": a, "b": b}, y), epochs=40)
        self.assertLess(history.epochs[-1].train_loss, 1e-2)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "say nothing of the input 'b'"):
            trainer.evaluate(loom.Dataset(a, y))

        def mean_squares(outputs):
            d = outputs - y[:8]
            return float((d * d).mean()), np.float32(1 / 8) * (d + d)

        part, hashes = {"input": a[:8], "b": b[:8]}, []
        for targets, loss in ((y[:8], None), (None, mean_squares)):
            again = loom.Network.from_json(json.dumps(description), seed=3)
            with loom.Trainer(again, batch=8, optimizer=loom.Sgd(0.05)) as steps:
                losses = [steps.step(part, targets, loss=loss)[0] for _ in range(5)]
                hashes.append(steps.weights_hash())
            self.assertLess(losses[-1], losses[0])
        self.assertEqual(hashes[0], hashes[1])
        with self.assertRaisesRegex(ValueError, "one for each input"):
            loom.Dataset({}, y)

    def test_people_see_what_it_is(self):
        net = small()
        self.assertIn("131 parameters", net.summary())
        line = "<loom.Network [4] -> [3], 2 layers, 131 parameters, float32>"
        self.assertEqual(repr(net), f"{line}\n{net.summary().rstrip()}")
        self.assertIn("<td>[16]</td>", net._repr_html_())
        self.assertEqual(net.info["output"], (3,))
        with net:
            pass
        self.assertTrue(net.closed)
        net.close()
        self.assertEqual(repr(net), "<loom.Network, closed>")
        with self.assertRaisesRegex(ValueError, "Network is closed"):
            net.predict([[1, 2, 3, 4]])


class Layers(unittest.TestCase):
    """The classes against what the library writes of layers with few fields given."""

    SAMPLES = {
        "Experts": {"width": 4, "inner": 3, "experts": 5, "chosen": 2},
        "SwiGLU": {"width": 4, "inner": 8}, "KMeans": {"clusters": 3, "width": 4},
        "Embedding": {"vocab": 9, "width": 4}, "RNN": {"in": 4, "hidden": 3},
        "LSTM": {"in": 4, "hidden": 3}, "GRU": {"in": 4, "hidden": 3},
        "MultiHeadAttention": {"width": 4, "heads": 2, "kv_heads": 2, "head_dim": 2},
        "Dense": {"in": 4, "out": 3}, "RMSNorm": {"width": 4}, "LayerNorm": {"width": 4},
        "BatchNorm": {"channels": 4}, "GroupNorm": {"channels": 4}, "InstanceNorm": {"channels": 3},
        "Reshape": {"shape": [2, -1]}, "Permute": {"axes": [0]}, "View": {"shape": [0, 2, -1]},
        "Scan": {"width": 4}, "SqueezeExcite": {"channels": 2, "hidden": 3},
        "SeparableConv": {"channels": 2, "filters": 3}, "Positions": {"length": 5, "width": 4},
        "CrossAttention": {"width": 4, "context": 4},
        "BiasedAttention": {"width": 4, "heads": 2, "length": 5},
        "EmbeddingBag": {"vocab": 9, "width": 3}, "RecurrentStack": {"in": 4, "hidden": 3},
        "WeightNormDense": {"in": 4, "out": 3}, "Mamba": {"width": 4},
        "SelectiveScan": {"width": 4, "inner": 6, "state": 3}, "ShortConv": {"width": 4},
        "ConvLSTM": {"channels": 2, "filters": 3},
        "WeightNormConv": {"channels": 2, "filters": 3},
        "SpectralNormConv": {"channels": 2, "filters": 3},
        "SpectralNormDense": {"in": 4, "out": 3}, "SpectralNorm": {"rows": 1, "cols": 4},
    }  # fmt: skip
    # Layers that only a graph may contain, and their number of inputs there.
    NODES = {"Binary": 2, "Concat": 2, "MatMul": 2, "Constant": 0, "Scan": 2, "CrossAttention": 2}
    INPUTS = {"Embedding": [5], "RNN": [5, 4], "LSTM": [5, 4], "GRU": [5, 4],
              "MultiHeadAttention": [5, 4], "InstanceNorm": [3, 4], "Pool": [1, 4],
              "Upsample": [1, 4], "PixelShuffle": [2, 4], "SqueezeExcite": [2, 4, 4],
              "SeparableConv": [2, 4, 4], "Positions": [5, 4], "BiasedAttention": [5, 4],
              "EmbeddingBag": [5], "RecurrentStack": [5, 4], "Mamba": [5, 4],
              "SelectiveScan": [5, 4], "ShortConv": [5, 4],
              "ConvLSTM": [2, 2, 4, 4], "WeightNormConv": [2, 4, 4],
              "SpectralNormConv": [2, 4, 4]}  # fmt: skip

    def test_every_kind_of_the_library_has_a_class_and_no_other(self):
        kinds = set(text_from(lib.loom_layer_types).split("\n"))
        types = {getattr(layers, name).TYPE for name in layers.__all__}
        self.assertEqual(types | {loom.Graph.TYPE}, kinds)

    def test_the_package_has_every_class(self):
        for name in layers.__all__:
            with self.subTest(name):
                self.assertIn(name, loom.__all__)
                if name != "Sequential":  # a network, there
                    self.assertIs(getattr(loom, name), getattr(layers, name))

    def test_defaults_are_those_of_the_library(self):
        for name in layers.__all__:
            kind = getattr(layers, name).TYPE
            given, shape = self.SAMPLES.get(kind, {}), self.INPUTS.get(kind, [4])
            if kind.startswith(("CNN", "ConvTransposed")):
                axes = int(kind.replace("CNN", "").replace("ConvTransposed", "")[0])
                given, shape = {"channels": 2, "filters": 3}, [2, *[6] * axes]
            if kind in ("Sequential", "Residual", "Parallel"):
                given = {"children": [{"type": "Dense", "in": 4, "out": 4}]}
            cell = {"at": [0, 0, 0, 0], "type": kind, **given}
            if kind in self.NODES:
                shape = [4, 4] if kind != "CrossAttention" else [5, 4]
                node = {"type": kind, **given, "from": ["input"] * self.NODES[kind]}
                total = {"type": "Binary", "from": ["0", "input"]}
                cell = {"at": [0, 0, 0, 0], "type": "Graph", "nodes": [node, total]}
                if kind == "Concat":
                    cell["nodes"] = [node]
            net = loom.Network.from_json(
                {"loom": 1, "grid": [1, 1, 1, 1], "input": shape, "cells": [cell]}
            )
            written = json.loads(net.json())["cells"][0]
            if kind in self.NODES:
                written = {"at": None, **written["nodes"][0]}
                written.pop("from")
            names = getattr(layers, name)._NAMES
            python = {n: given[key] for n, key in names.items() if key in given}
            if "children" in given:
                python["children"] = [loom.Dense(4, 4)]
            ours = getattr(layers, name)(**python).description()
            if written["type"] != kind:  # a block, of which a network has the parts alone
                with self.subTest(name):
                    self.assert_same_network(cell, kind, {"type": kind, **given}, ours, shape)
                continue
            written.pop("at"), written.pop("disabled")
            ours.pop("children", None), written.pop("children", None)
            with self.subTest(name):
                # Files omit newer fields at their default.
                newer = {key: ours.pop(key) for key in set(ours) - set(written)}
                self.assertEqual(ours, written)
                bare = {"type": kind, **given}
                if newer:
                    self.assert_same_network(cell, kind, bare, {**bare, **newer}, shape)

    def assert_same_network(self, cell, kind, bare, typed, shape):
        def described(layer):
            made = {**cell, **layer} if "nodes" not in cell else {
                **cell, "nodes": [{**cell["nodes"][0], **layer}, *cell["nodes"][1:]]}
            network = {"loom": 1, "grid": [1, 1, 1, 1], "input": shape, "cells": [made]}
            return loom.Network.from_json(network).json()
        self.assertEqual(described(bare), described(typed), kind)

    def test_a_graph_joins_what_branched(self):
        g = loom.Graph()
        wide = g.add(loom.Conv2d(3, 8, padding=1), g.input)
        thin = g.add(loom.Conv2d(3, 4, kernel=1), g.input, name="thin")
        g.output(g.add(loom.Concat(axis=1), wide, thin))
        net = loom.Sequential([g, loom.Dense(12 * 64, 10)], input=(3, 8, 8))
        x = np.linspace(-1, 1, 2 * 3 * 64, dtype=np.float32).reshape(2, 3, 8, 8)
        self.assertEqual(net.predict(x).shape, (2, 10))
        again = loom.Network.from_json(net.json())
        self.assertTrue(same_bits(net.predict(x), again.predict(x)))
        with self.assertRaisesRegex(ValueError, "not a value of this graph"):
            g.add(loom.Binary(), wide, loom.Graph().input)

    def test_a_tower_reads_two_things_with_one_set_of_weights(self):
        g = loom.Graph()
        left = g.add(loom.Slice([0], [3], axes=[-1]), g.input)
        right = g.add(loom.Slice([3], [6], axes=[-1]), g.input)
        one = g.add(loom.Dense(3, 4, activation="tanh"), left, name="tower")
        other = g.again(one, right)
        both = g.add(loom.Binary("add"), one, g.again(other, left, name="once more"))
        g.output(g.add(loom.Binary("mul"), both, other))
        net = loom.Sequential([g], input=6)
        self.assertEqual(net.info["parameters"], 16)
        x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)
        same = x.copy()
        same[:, 3:] = x[:, :3]
        self.assertTrue((net.predict(same) >= 0).all())  # squares
        again = loom.Network.from_json(net.json())
        self.assertEqual(again.info["parameters"], 16)
        self.assertTrue(same_bits(net.predict(x), again.predict(x)))
        with self.assertRaisesRegex(ValueError, "no weights to share"):
            g.again(g.input, left)

    def test_random_networks_come_back_from_their_description(self):
        for seed in range(20):
            net, x = random_network(seed)
            dtype = net.info["dtype"]
            again = loom.Network.from_json(net.json(), seed=seed, dtype=dtype)
            self.assertTrue(same_bits(net.predict(x), again.predict(x)), net.summary())


class Arrays(unittest.TestCase):
    def test_results_lie_in_memory_of_the_library(self):
        y = small().predict(np.ones((3, 4), np.float32))
        self.assertFalse(y.flags.owndata)
        self.assertTrue(y.flags.writeable)
        kept = y[1]
        del y
        self.assertTrue(np.isfinite(kept).all())

    def test_inputs_are_handed_over_where_they_lie(self):
        x = np.arange(24, dtype=np.float64).reshape(4, 6)
        for view in (x, x.T, x[::2, ::-1], x[1:, 2:3]):
            tensor = loom.arrays.as_tensor(view).tensor
            address = view.__array_interface__["data"][0]
            self.assertEqual(tensor.data, address)
            if view.flags.c_contiguous:
                self.assertFalse(tensor.strides)
            else:
                self.assertEqual([n * 8 for n in tensor.strides[:2]], list(view.strides))

    def test_views_give_what_copies_give(self):
        net, (x, _) = small(), points()
        wide = np.repeat(x, 2, axis=1)[:, ::2]
        for view in (wide, np.asfortranarray(x), x[::-1][::-1], x.astype(np.float64)):
            self.assertTrue(same_bits(net.predict(view), net.predict(x)))

    def test_dlpack_shares_memory_both_ways(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        array = loom.Array.from_dlpack(x)
        x[0, 0] = 7
        self.assertEqual(array.tolist()[0][0], 7)
        again = np.from_dlpack(array)
        self.assertTrue(np.shares_memory(again, x))
        if np.lib.NumpyVersion(np.__version__) < "2.1.0":  # it knows DLPack as read-only alone
            return
        self.assertTrue(again.flags.writeable)
        del array, x
        self.assertEqual(again[0, 0], 7)
        again.flags.writeable = False
        fixed = loom.Array.from_dlpack(again)
        self.assertFalse(fixed.numpy().flags.writeable)
        with self.assertRaises(BufferError):
            np.from_dlpack(fixed)
        kept = loom.Array.from_dlpack(np.arange(3.0))
        loom.Array.from_dlpack(kept).__dlpack__()  # without a receiver
        self.assertEqual(kept.tolist(), [0, 1, 2])

    def test_what_is_no_tensor_is_refused_by_name(self):
        net = small()
        for wrong, words in (
            (np.ones((1, 4), np.complex64), "complex64"),
            (np.array([["a"] * 4]), "not a tensor"),
            (np.ones((1, 4), ">f4"), "byte order"),
            (np.ones((1, 4), object), "object"),
        ):
            with self.assertRaisesRegex(TypeError, words):
                net.predict(wrong)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "5"):
            net.predict(np.ones((2, 5), np.float32))

    def test_types_have_the_numbers_of_c(self):
        for name, number in _ffi.DTYPE.items():
            self.assertEqual(loom.arrays.dtype_name(number), name)
            self.assertEqual(loom.arrays.dtype_number(name), number)


if __name__ == "__main__":
    unittest.main()
