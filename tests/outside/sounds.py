#!/usr/bin/env python3
"""Random sounds of every form that soundfile writes, in Loom and in soundfile: container, coding,
channels, rate and length at random; then the same files cut, and with bytes changed.

  sounds.py --program build/dev/tests/sound_runner [--count N] [--seed S] [--verbose]

Samples are the mean of the channels in double precision, rounded once, and equal bit by bit. Those
of Vorbis, Opus and MP3, whose decoders may be of other versions, are within 2e-3 of the largest. A
cut file is an error if its header gives the length. Exit status 1 if anything is off.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile

import numpy as np
import soundfile

# Common containers; codings that need a rate or channels of their own are marked.
CONTAINERS = ("WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF", "FLAC", "OGG", "MP3")
LOSSY = ("VORBIS", "OPUS", "MPEG_LAYER_III", "MPEG_LAYER_II", "MPEG_LAYER_I")
RATES = {"OPUS": (8000, 16000, 48000), "MPEG_LAYER_III": (16000, 22050, 44100, 48000),
         "GSM610": (8000,), "G721_32": (8000,), "NMS_ADPCM_16": (8000,),
         "NMS_ADPCM_24": (8000,), "NMS_ADPCM_32": (8000,)}
# Files of these give their length, so a cut is detected.
KNOWS_LENGTH = ("WAV", "WAVEX", "RF64", "W64", "AIFF", "AU", "CAF", "FLAC")


def drawn(g, folder, i):
    """The path of a sound, or None if soundfile does not write and read that combination."""
    container = str(g.choice(CONTAINERS))
    codings = [c for c in soundfile.available_subtypes(container)
               if soundfile.check_format(container, c)]
    coding = str(g.choice(codings))
    channels = int(g.integers(1, 3 if coding in LOSSY else 6))
    if coding in RATES and coding not in LOSSY:
        channels = 1
    rate = int(g.choice(RATES.get(coding, (8000, 11025, 16000, 22050, 44100, 48000, 96000))))
    frames = int(g.integers(1, 6000)) if coding not in LOSSY else int(g.integers(3000, 9000))
    t = np.arange(frames)[:, None] / rate
    tones = g.uniform(50, 3000, channels)
    x = 0.4 * np.sin(2 * np.pi * tones * t) + g.normal(0, 0.05, (frames, channels))
    path = os.path.join(folder, f"{i}.{container.lower()}")
    try:
        soundfile.write(path, np.clip(x, -0.99, 0.99), rate, subtype=coding, format=container)
        soundfile.read(path)
    except (soundfile.LibsndfileError, ValueError):
        return None
    return path, container, coding


def damaged(g, path, cut):
    data = bytearray(open(path, "rb").read())
    if cut:
        data = data[:int(len(data) * g.uniform(0.3, 0.8))]
    else:
        for _ in range(int(g.integers(1, 20))):
            data[int(g.integers(len(data)))] = int(g.integers(256))
    other = path + (".cut" if cut else ".changed")
    with open(other, "wb") as file:
        file.write(data)
    return other


def run(program, paths):
    lines = "".join(f"{p} {p}.f32\n" for p in paths)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False,
                          timeout=1800)
    answers = done.stdout.splitlines()
    return answers + [f"ended with status {done.returncode}"] * (len(paths) - len(answers))


def why_wrong(path, coding, answer):
    if not answer.startswith("ok "):
        return answer
    want, rate = soundfile.read(path, dtype="float64", always_2d=True)
    total = np.zeros(len(want))
    for channel in want.T:  # in their order, as Loom adds them
        total = total + channel
    mean = (total / want.shape[1]).astype(np.float32)
    got = np.fromfile(path + ".f32", np.float32)
    if int(answer.split()[1]) != rate or got.shape != mean.shape:
        return f"rate {answer.split()[1]} and {got.shape}, not {rate} and {mean.shape}"
    if coding not in LOSSY:
        return "" if np.array_equal(got, mean) else f"off by {np.abs(got - mean).max():.3g}"
    off = np.abs(got - mean).max() / max(np.abs(mean).max(), 1e-3)
    return "" if off < 2e-3 else f"off by {off:.3g} of the largest"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="how often each form came up")
    args = parser.parse_args()
    g = np.random.default_rng(args.seed)
    right, wrong, forms = 0, 0, collections.Counter()

    def count(why, what):
        nonlocal right, wrong
        right, wrong = right + (not why), wrong + bool(why)
        if why:
            print(f"wrong: {what}: {why}")

    with tempfile.TemporaryDirectory() as folder:
        cases = [c for i in range(args.count) if (c := drawn(g, folder, i)) is not None]
        answers = run(args.program, [c[0] for c in cases])
        for (path, container, coding), answer in zip(cases, answers):
            forms[container, coding] += 1
            count(why_wrong(path, coding, answer), f"{container} {coding}")
        cuts = [(damaged(g, p, True), c, k) for p, c, k in cases]
        answers = run(args.program, [c[0] for c in cuts])
        for (path, container, coding), answer in zip(cuts, answers):
            may_end = () if container in KNOWS_LENGTH else ("ok ",)
            ends = answer.startswith(("damaged ", "refused ") + may_end)
            count("" if ends else f"cut, and {answer}", f"{container} {coding}")
        others = [damaged(g, p, False) for p, _, _ in cases]
        for path, answer in zip(others, run(args.program, others)):
            fine = answer.startswith(("ok ", "damaged ", "refused "))
            count("" if fine else answer, path)
    for (container, coding), n in sorted(forms.items()) if args.verbose else []:
        print(container, coding, n)
    print(f"{len(forms)} forms of sound")
    print(f"{right} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
