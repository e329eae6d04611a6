"""The same bits in C++ (the program), in C and in Python."""

import unittest

import loom
import numpy as np
from random_networks import random_network
from support import (
    CAPI_TEST,
    PROGRAM,
    STORIES,
    Scratch,
    needs_capi_test,
    needs_program,
    points,
    run,
    same_bits,
)

RANDOM_NETWORKS = 40
EMBEDDINGS = ("triplet", "contrastive", "infonce")  # by labels


class Program(Scratch):
    def predicted(self, network_file, x):
        np.savez(self.folder / "x.npz", x=x)
        out = self.folder / "y.npz"
        run(PROGRAM, "predict", network_file, self.folder / "x.npz", "-o", out, "--force",
            "--quiet")  # fmt: skip
        return np.load(out)["outputs"]

    @needs_program
    def test_random_networks_predict_as_the_program_does(self):
        file = self.folder / "net.entity"
        outputs = set()
        for seed in range(RANDOM_NETWORKS):
            net, x = random_network(seed)
            with self.subTest(seed=seed, network=net.summary()):
                net.save(file)
                y = net.predict(x)
                theirs = self.predicted(file, x).reshape(y.shape)
                self.assertTrue(same_bits(y, theirs))
                self.assertTrue(np.isfinite(y).all())
                outputs.add(y.tobytes())
        self.assertEqual(len(outputs), RANDOM_NETWORKS, "networks that give the same prove little")

    def trained_by_the_program(self, net, data, *words):
        net.save(self.folder / "net.json", weights=False)
        out = self.folder / "trained.entity"
        run(PROGRAM, "train", self.folder / "net.json", data, "--epochs", "4", "-o", out,
            "--force", "--quiet", *words)  # fmt: skip
        return loom.Network.load(out)

    @needs_program
    def test_training_gives_the_weights_of_the_program(self):
        x, y = points()
        data, found = self.folder / "data.npz", set()
        np.savez(data, x=x, y=y)
        constant = {"schedule": loom.Schedule("constant")}
        cases = [
            *((["--optimizer", kind, "--rate", "0.003", "--schedule", "constant"],
               {**constant, "optimizer": optimizer(rate=0.003)})
              for kind, optimizer in loom.options.OPTIMIZERS.items()),
            *((["--schedule", kind, "--rate", "0.01", "--every", "2", "--milestones", "1", "3"],
               {"schedule": loom.Schedule(kind, every=2, milestones=(1, 3)),
                "optimizer": loom.Adam(0.01)}) for kind in loom._ffi.SCHEDULE),
            *((["--clip", f"{kind}:0.01", "--rate", "0.1", "--schedule", "constant",
                "--optimizer", "sgd"],
               {**constant, "clip": kind, "clip_limit": 0.01, "optimizer": loom.Sgd(0.1)})
              for kind in ("norm", "layer", "value")),
            *((["--normalize", kind, "--rate", "0.01", "--schedule", "constant"],
               {**constant, "normalize": kind, "optimizer": loom.Adam(0.01)})
              for kind in ("standard", "range")),
            (["--smoothing", "0.1", "--batch", "50", "--accumulate", "2", "--no-shuffle",
              "--rate", "0.01", "--schedule", "constant"],
             {**constant, "label_smoothing": 0.1, "batch": 50, "accumulate": 2,
              "shuffle": False, "optimizer": loom.Adam(0.01)}),
            (["--seed", "9", "--decay", "0.5", "--optimizer", "adamw", "--rate", "0.01",
              "--schedule", "constant"],
             {**constant, "seed": 9, "optimizer": loom.AdamW(0.01, weight_decay=0.5)}),
        ]  # fmt: skip
        for words, options in cases:
            layers = [loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)]
            net = loom.Sequential(layers, input=4, seed=options.get("seed", 1))
            with self.subTest(words):
                theirs = self.trained_by_the_program(net, data, *words)
                net.fit(x, y, epochs=4, **options)
                self.assertTrue(same_bits(net.predict(x), theirs.predict(x)))
                found.add(net.predict(x).tobytes())
        # In four epochs a plateau is not waited for, so that one schedule is the constant one.
        self.assertEqual(len(found), len(cases) - 1, "options that change nothing prove nothing")

    @needs_program
    def test_every_loss_is_that_of_the_program(self):
        x, y = points()
        goals = np.stack([y == 0, y == 1], axis=1).astype(np.float32) * 0.8 + 0.1
        shares = goals / goals.sum(axis=1, keepdims=True)
        of_loss = {"hinge": np.where(goals > 0.5, 1, -1).astype(np.float32), "kl": shares}
        data, found = self.folder / "data.npz", set()
        others = {"automatic", "cross_entropy", "ctc", *EMBEDDINGS}
        for loss in sorted(set(loom._ffi.LOSS) - others):
            net = loom.Sequential([loom.Dense(4, 2)], input=4)
            targets = of_loss.get(loss, goals)
            np.savez(data, x=x, y=targets)
            with self.subTest(loss):
                theirs = self.trained_by_the_program(
                    net, data, "--loss", loss, "--rate", "0.01", "--schedule", "constant"
                )
                net.fit(x, targets, epochs=4, loss=loss, optimizer=loom.Adam(0.01))
                self.assertTrue(same_bits(net.predict(x), theirs.predict(x)))
                found.add(net.predict(x).tobytes())
        self.assertGreater(len(found), 4)

    @needs_program
    def test_stories_are_those_of_the_program(self):
        llm = loom.LLM(STORIES)
        for options in ({}, {"temperature": 0.8, "seed": 7}, {"temperature": 1.0, "top_k": 20}):
            words = [w for k, v in options.items() for w in ("--" + k.replace("_", "-"), str(v))]
            printed = run(PROGRAM, "run", STORIES, "-p", "One day", "--max-tokens", "60",
                          "--no-echo", "--quiet", *words)  # fmt: skip
            with self.subTest(options):
                self.assertEqual(llm.generate("One day", max_tokens=60, **options), printed[:-1])

    @needs_program
    def test_chats_are_those_of_the_program(self):
        printed = run(PROGRAM, "run", STORIES, "--chat", "-p", "Hello", "--max-tokens", "30",
                      "--quiet")  # fmt: skip
        llm = loom.LLM(STORIES)
        for turns in ("Hello", [("user", "Hello")], [{"role": "user", "content": "Hello"}]):
            self.assertEqual(llm.chat(turns, max_tokens=30), printed[:-1])


class FromC(unittest.TestCase):
    @needs_capi_test
    def test_outputs_training_and_stories_are_those_of_c(self):
        printed = run(CAPI_TEST, "bits", env={"LOOM_TEST_MODEL": str(STORIES)})
        before, trained, after, story, *_ = (line.partition(" ")[2] for line in printed.split("\n"))
        x, y = points()
        net = loom.Sequential(
            [loom.Dense(4, 16, activation="tanh"), loom.Dense(16, 3)], input=4, seed=7
        )
        self.assertEqual(net.predict(x).tobytes().hex(), before)
        with loom.Trainer(net, optimizer=loom.Adam(1e-2)) as trainer:
            trainer.fit(loom.Dataset(x, y), epochs=3)
            self.assertEqual(trainer.weights_hash(), trained)
        self.assertEqual(net.predict(x).tobytes().hex(), after)
        self.assertNotEqual(before, after)
        text = loom.LLM(STORIES).generate(
            "Once upon a time", max_tokens=60, temperature=0.8, seed=7
        )
        self.assertEqual(text.split("\n")[0], story)


if __name__ == "__main__":
    unittest.main()
