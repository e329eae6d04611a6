#!/usr/bin/env python3
"""Architecture search by gradients on real digits: the result compared with the start network.

IMAGES and LABELS are IDX files of 10,000 digits. The first 8,000 of a fixed order are for the
search and training, the last 2,000 test, as in bench/rules.py. The search (`loom darts`) sees the
8,000 alone and may keep no more parameters than the seed network has. Then both are trained again,
from new weights, by the same command over the same seeds. The table shows the accuracy on the
2,000.

  bench/darts.py build/dev/cli/loom images-idx3-ubyte.gz labels-idx1-ubyte.gz
  bench/darts.py LOOM IMAGES LABELS --hidden 16 --order 1 --epochs 10 --seeds 1,2,3,4,5

Exit status: 0; 1 if the resulting network is not better on average, or is larger.
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


def parameters_of(loom, path):
    done = subprocess.run([loom, "info", path, "--json"], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)["parameters"]


def search(loom, folder, args):
    """The files of the seed network and of the one that was found."""
    part = os.path.join(folder, "rows")
    seed, found = os.path.join(folder, "seed.json"), os.path.join(folder, "found.json")
    with open(seed, "w", encoding="utf-8") as f:
        json.dump(rules.mlp("relu", (784, *args.hidden, 10)), f)
    command = [loom, "darts", seed, os.path.join(part, "train.idx"),
               "--labels", os.path.join(part, "train_labels.idx"), "--normalize", "range",
               "--order", str(args.order), "--epochs", str(args.search_epochs),
               "--seed", str(args.search_seed), "--batch", str(args.search_batch),
               "--alpha-rate", str(args.alpha_rate), "--threads", "1", "--quiet", "-o", found]
    if args.svg:
        command += ["--svg", args.svg]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    print(done.stdout, flush=True)
    return seed, found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loom")
    parser.add_argument("images")
    parser.add_argument("labels")
    parser.add_argument("--hidden", type=lambda s: [int(n) for n in s.split(",")], default=[16],
                        help="widths between 784 and 10 of the seed network")
    parser.add_argument("--order", type=int, default=2)
    parser.add_argument("--search-epochs", type=int, default=6)
    parser.add_argument("--search-batch", type=int, default=64)
    parser.add_argument("--search-seed", type=int, default=1)
    parser.add_argument("--alpha-rate", type=float, default=0.01)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.002)
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--svg", default="", help="draw the shares of the branches")
    args = parser.parse_args()
    means, sizes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rows", "pictures"):
            os.mkdir(os.path.join(folder, name))
            rules.write_parts(args.images, args.labels, os.path.join(folder, name), False,
                              name == "pictures")
        files = search(args.loom, folder, args)
        print("| network | parameters | mean | standard deviation | least | seeds, epochs |")
        print("|---|---|---|---|---|---|")
        for name, path in zip(("seed", "found"), files):
            with open(path, encoding="utf-8") as f:
                net = json.load(f)
            run = rules.Run(name, "back-propagation", net, None, epochs=args.epochs, rate=args.rate)
            scores = [rules.train(args.loom, run, int(seed), folder)[0]
                      for seed in args.seeds.split(",")]
            means.append(statistics.fmean(scores))
            sizes.append(parameters_of(args.loom, path))
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            print(f"| {name} | {sizes[-1]} | {means[-1]:.2f} % | {spread:.2f} | "
                  f"{min(scores):.2f} % | {len(scores)}, {args.epochs} |", flush=True)
    return 0 if means[1] > means[0] and sizes[1] <= sizes[0] else 1


if __name__ == "__main__":
    sys.exit(main())
