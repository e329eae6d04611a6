#!/usr/bin/env python3
"""K-FAC and Adam on real digits: whether half of the steps give Adam's final training loss.

IMAGES and LABELS are IDX files of 10,000 digits; the first 8,000 of a fixed order train, as in
bench/rules.py. Adam runs with several rates, and the best final loss counts. K-FAC takes batches of
the same size and half of the epochs; the rate of both falls along a half cosine over their own run.

  bench/kfac.py build/dev/cli/loom images-idx3-ubyte.gz labels-idx1-ubyte.gz
  bench/kfac.py LOOM IMAGES LABELS --epochs 8 --batch 128 --seeds 1,2,3

Exit status: 0; 1 when the mean loss of K-FAC over the seeds is above that of Adam.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import rules  # noqa: E402

ADAM_RATES = (0.001, 0.002, 0.004, 0.008)
NETS = {"mlp 784-256-128-10": rules.mlp("relu"), "cnn 8-16-dense": rules.cnn("relu")}
# Chosen with seed 101 on the training part of rules.py --tune; the same for both.
KFAC = {"rate": 0.1, "damping": 0.1, "trust": 0.01, "inverse_every": 10}


def losses(loom, net, folder, seed, flags, args):
    part = os.path.join(folder, "pictures" if len(net["input"]) == 3 else "rows")
    path = os.path.join(folder, "net.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(net, f)
    command = [loom, "train", path, os.path.join(part, "train.idx"),
               "--labels", os.path.join(part, "train_labels.idx"), "--normalize", "range",
               "--batch", str(args.batch), "--seed", str(seed), "--threads", "1", "--json"]
    for flag, value in flags.items():
        command += ["--" + flag.replace("_", "-"), str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["losses"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loom")
    parser.add_argument("images")
    parser.add_argument("labels")
    parser.add_argument("--epochs", type=int, default=8, help="of Adam")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--set", action="append", default=[], metavar="FLAG=VALUE",
                        help="a flag of loom train for K-FAC; may be repeated")
    args = parser.parse_args()
    steps = (rules.TRAIN + args.batch - 1) // args.batch
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rows", "pictures"):
            os.mkdir(os.path.join(folder, name))
            rules.write_parts(args.images, args.labels, os.path.join(folder, name), False,
                              name == "pictures")
        print("| network | seed | Adam: steps, final loss (rate) | K-FAC: steps, final loss |")
        print("|---|---|---|---|")
        for name, net in NETS.items():
            finals = []
            for seed in args.seeds.split(","):
                runs = {rate: losses(args.loom, net, folder, seed,
                                     {"rate": rate, "epochs": args.epochs}, args)[-1]
                        for rate in ADAM_RATES}
                rate, wanted = min(runs.items(), key=lambda item: item[1])
                half = args.epochs // 2
                flags = {**KFAC, "optimizer": "kfac", "epochs": half,
                         **dict(pair.split("=", 1) for pair in args.set)}
                reached = losses(args.loom, net, folder, seed, flags, args)[-1]
                finals.append((wanted, reached))
                print(f"| {name} | {seed} | {args.epochs * steps}, {wanted:.5f} ({rate}) | "
                      f"{half * steps}, {reached:.5f} |", flush=True)
            adam, half_way = (statistics.fmean(column) for column in zip(*finals))
            missed += half_way > adam
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
