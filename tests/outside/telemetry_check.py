"""Telemetry of a training run. TensorBoard's own reader reads it, and it is compared with the lines
of JSON of the same run. These are compared with the output of `loom train --json`.

    python telemetry_check.py LOOM      closes with "N passed, N failed, N skipped"
"""

import json
import math
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tools"))
sys.dont_write_bytecode = True
from counted import run_counted  # noqa: E402
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: E402

LOOM = ""
EPOCHS, BATCHES = 4, 5


def write_rows(path: Path) -> None:
    """200 points in a plane; the class is the quadrant's parity."""
    draw = random.Random(5)
    with open(path, "w") as out:
        out.write("a,b,class\n")
        for _ in range(200):
            a, b = draw.uniform(-1, 1), draw.uniform(-1, 1)
            out.write(f"{a:.4f},{b:.4f},{int(a * b > 0)}\n")


class Telemetry(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        work = Path(cls.folder.name)
        write_rows(work / "rows.csv")
        run = [LOOM, "new", "mlp", "--in", "2", "--hidden", "8", "--out", "2", "-o", "net.json"]
        subprocess.run(run, cwd=work, check=True)
        run = [LOOM, "train", "net.json", "rows.csv", "--split", "0.8", "--epochs", str(EPOCHS)]
        run += ["--metrics", "auc", "--tensorboard", "runs", "--telemetry", "run.jsonl,now.prom"]
        printed = subprocess.run([*run, "--json"], cwd=work, check=True, stdout=subprocess.PIPE)
        cls.printed = json.loads(printed.stdout)
        cls.lines = [json.loads(line) for line in (work / "run.jsonl").read_text().splitlines()]
        cls.gauges = (work / "now.prom").read_text()
        cls.events = EventAccumulator(
            str(work / "runs"), size_guidance={"scalars": 0, "histograms": 0}
        )
        cls.events.Reload()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def told(self, tag):
        return [(line["step"], line["value"]) for line in self.lines
                if line["tag"] == tag and "value" in line]

    def test_tensorboard_has_every_scalar_of_the_lines(self):
        tags = {line["tag"] for line in self.lines if "value" in line}
        self.assertEqual(tags, set(self.events.Tags()["scalars"]))
        for tag in tags:
            read = [(e.step, e.value) for e in self.events.Scalars(tag)]
            self.assertEqual([step for step, _ in read], [step for step, _ in self.told(tag)])
            for (_, mine), (_, its) in zip(self.told(tag), read):
                self.assertTrue(math.isclose(mine, its, rel_tol=1e-6), f"{tag}: {mine}, {its}")

    def test_losses_are_those_that_the_run_prints(self):
        for tag, name in [("loss/train", "losses"), ("loss/validation", "validation_losses"),
                          ("accuracy/validation", "accuracies")]:
            self.assertEqual([value for _, value in self.told(tag)], self.printed[name])
        self.assertEqual([v for _, v in self.told("metrics/auc")], self.printed["metrics"]["auc"])

    def test_steps_are_counted_through_all_epochs(self):
        steps = [step for step, _ in self.told("loss/batch")]
        self.assertEqual(steps, list(range(1, EPOCHS * BATCHES + 1)))

    def test_histograms_of_the_weights_count_every_value(self):
        tags = self.events.Tags()["histograms"]
        self.assertEqual(len(tags), 4)  # weight and bias of two layers
        numbers = 0
        for tag in tags:
            spreads = self.events.Histograms(tag)
            self.assertEqual([s.step for s in spreads], list(range(1, EPOCHS + 1)))
            last = spreads[-1].histogram_value
            self.assertEqual(sum(last.bucket), last.num)
            numbers += int(last.num)
        self.assertEqual(numbers, self.printed["parameters"])

    def test_the_graph_has_the_cells_in_a_row(self):
        nodes = [(node.op, list(node.input)) for node in self.events.Graph().node]
        self.assertEqual([op for op, _ in nodes], ["Placeholder", "Dense", "Dense"])
        names = [node.name for node in self.events.Graph().node]
        self.assertEqual([inputs for _, inputs in nodes], [[], [names[0]], [names[1]]])

    def test_prometheus_has_the_last_values(self):
        last = self.told("loss/train")[-1]
        text = next(line for line in self.gauges.splitlines()
                    if line.startswith("loom_loss_train{"))
        self.assertEqual(float(text.split()[-1]), last[1])


if __name__ == "__main__":
    LOOM = str(Path(sys.argv[1]).resolve())
    loader = unittest.defaultTestLoader
    sys.exit(run_counted(loader.loadTestsFromModule(sys.modules[__name__])))
