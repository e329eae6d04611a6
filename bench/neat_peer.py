#!/usr/bin/env python3
"""NEAT of Loom and neat-python in one run: networks until a task is solved, and seconds.

Two tasks. XOR: a run ends with the first generation in which any network has all four answers on
the right side of 0.5. Cart-pole (equations and starts of src/lab/tasks/cart_pole.hpp, in Python):
any network balances 1000 steps from each of five starts. Every network of every generation counts.
neat-python runs in one thread with its usual settings for XOR (population 150, weights of +-30,
sigmoid) on both. Loom runs in one lane with those of `loom bench neat`.

  python3 -m venv work && work/bin/pip install neat-python
  bench/neat_peer.py --python work/bin/python --seeds 10

Exit status: 0; 77 if neat-python is absent.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
[NEAT]
fitness_criterion = max
fitness_threshold = 100
no_fitness_termination = True
pop_size = 150
reset_on_extinction = True
[DefaultGenome]
activation_default = sigmoid
activation_mutate_rate = 0.0
activation_options = sigmoid
aggregation_default = sum
aggregation_mutate_rate = 0.0
aggregation_options = sum
bias_init_mean = 0.0
bias_init_stdev = 1.0
bias_init_type = gaussian
bias_max_value = 30.0
bias_min_value = -30.0
bias_mutate_power = 0.5
bias_mutate_rate = 0.7
bias_replace_rate = 0.1
compatibility_disjoint_coefficient = 1.0
compatibility_weight_coefficient = 0.5
conn_add_prob = 0.5
conn_delete_prob = 0.5
enabled_default = True
enabled_mutate_rate = 0.01
feed_forward = True
initial_connection = full_direct
node_add_prob = 0.2
node_delete_prob = 0.2
num_hidden = 0
num_inputs = {inputs}
num_outputs = 1
response_init_mean = 1.0
response_init_stdev = 0.0
response_init_type = gaussian
response_max_value = 30.0
response_min_value = -30.0
response_mutate_power = 0.0
response_mutate_rate = 0.0
response_replace_rate = 0.0
single_structural_mutation = False
structural_mutation_surer = default
weight_init_mean = 0.0
weight_init_stdev = 1.0
weight_init_type = gaussian
weight_max_value = 30
weight_min_value = -30
weight_mutate_power = 0.5
weight_mutate_rate = 0.8
weight_replace_rate = 0.1
[DefaultSpeciesSet]
compatibility_threshold = 3.0
[DefaultStagnation]
species_fitness_func = max
max_stagnation = 20
species_elitism = 2
[DefaultReproduction]
elitism = 2
survival_threshold = 0.2
min_species_size = 2
"""


def judge_xor(network):
    """Fitness, and whether it is solved."""
    answers = [network.activate((a, b))[0] for a in (0, 1) for b in (0, 1)]
    distance = sum(abs(w - y) for w, y in zip((0, 1, 1, 0), answers))
    right = all((y > 0.5) == bool(w) for w, y in zip((0, 1, 1, 0), answers))
    return (4 - distance) ** 2, right


def judge_cart(network):
    steps = 0
    for i in range(5):
        side = i - 2
        x, v, angle, speed = 0.4 * side, -0.2 * side, 0.03 * side, 0.1 * (i * 3 % 5 - 2)
        for _ in range(1000):
            right = network.activate((x / 2.4, v / 2, angle / 0.21, speed / 2))[0] > 0.5
            sin, cos = math.sin(angle), math.cos(angle)
            pull = ((10 if right else -10) + 0.05 * speed * speed * sin) / 1.1
            turn = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
            push = pull - 0.05 * turn * cos / 1.1
            x, v, angle, speed = (x + 0.02 * v, v + 0.02 * push, angle + 0.02 * speed,
                                  speed + 0.02 * turn)
            if not (abs(x) <= 2.4 and abs(angle) <= 12 * math.pi / 180):
                break
            steps += 1
    return steps / 5000, steps == 5000


TASKS = {"xor": ("XOR", 2, judge_xor), "cart-pole": ("cart-pole", 4, judge_cart)}


def peer_run(neat, path, seed, generations, judge_one):
    """Evaluations and seconds of one run of neat-python; None if it does not solve the task."""
    import random

    random.seed(seed)
    config = neat.Config(neat.DefaultGenome, neat.DefaultReproduction, neat.DefaultSpeciesSet,
                         neat.DefaultStagnation, path)
    population = neat.Population(config)
    seen = {"evaluations": 0, "solved": False}

    def judge(genomes, config):
        for _, genome in genomes:
            network = neat.nn.FeedForwardNetwork.create(genome, config)
            genome.fitness, right = judge_one(network)
            seen["solved"] = seen["solved"] or right
        seen["evaluations"] += len(genomes)
        if seen["solved"]:
            raise StopIteration

    begin = time.monotonic()
    try:
        population.run(judge, generations)
    except StopIteration:
        pass
    return seen["evaluations"] if seen["solved"] else None, time.monotonic() - begin


def peer(task, seeds, first):
    """Runs inside of the interpreter that has neat-python; prints JSON."""
    import neat

    _, inputs, judge = TASKS[task]
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(CONFIG.replace("{inputs}", str(inputs)))
        file.flush()
        runs = [peer_run(neat, file.name, first + i, 300, judge) for i in range(seeds)]
    print(json.dumps({"evaluations": [r[0] for r in runs], "seconds": [r[1] for r in runs]}))


def compare(task, args):
    seeds = ["--seeds", str(args.seeds), "--first-seed", str(args.first_seed)]
    theirs = json.loads(subprocess.run([args.python, __file__, "--peer", task, *seeds], check=True,
                                       capture_output=True, text=True).stdout)
    ours = json.loads(subprocess.run(
        [args.loom, "bench", "neat", "--task", task, "--json", "--threads", "1", "--quiet"] + seeds,
        check=True, capture_output=True, text=True).stdout)
    solved = [e for e in theirs["evaluations"] if e is not None]
    median = statistics.median(e if e is not None else float("inf") for e in theirs["evaluations"])
    name = TASKS[task][0]
    print(f"{name + ', neat-python':<24}{len(solved):>7}/{args.seeds:<2}{median:>18.0f}"
          f"{statistics.median(theirs['seconds']):>17.4f}")
    print(f"{name + ', Loom':<24}{ours['solved']:>7}/{args.seeds:<2}"
          f"{ours['median_evaluations']:>18.0f}{ours['median_seconds']:>17.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with neat-python")
    parser.add_argument("--loom", default="build/dev/cli/loom")
    parser.add_argument("--task", choices=["all", *TASKS], default="all")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--peer", choices=list(TASKS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args.peer, args.seeds, args.first_seed)
    found = subprocess.run([args.python, "-c", "import neat"], capture_output=True, check=False)
    if found.returncode != 0:
        print("skipped: neat-python is not there; pip install neat-python")
        return 77
    print(f"{'task':<24}{'solved':>10}{'median networks':>18}{'median seconds':>17}")
    for task in TASKS:
        if args.task in ("all", task):
            compare(task, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
