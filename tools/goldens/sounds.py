#!/usr/bin/env python3
"""Writes tests/media/golden/sounds.npz: WAV files of every form, and results of other programs.

  tools/goldens/sounds.py OUT.npz [COUNT [SEED]]   needs numpy, scipy, librosa and soundfile

Sound i has "iN" (the file), "wN" (its samples by soundfile, channels as their mean), and "rN"
(resampled to "toN" samples per second: upfirdn of scipy with the filter of
torchaudio.functional.resample). It has "sN" (rate, window, hop, bands, recipe, low, high, frames)
and "mN" (librosa's mel spectrogram in decibels). With htk=True, norm=None and the ends mirrored,
"mN" is torchaudio's. A larger COUNT than in the repository is for LOOM_SOUNDS_GOLDEN of
tests/media.
"""

import io
import math
import sys

import librosa
import numpy as np
import soundfile
from scipy import signal

FORMS = ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"]


def resampled(wave, rate, to):
    if rate == to:
        return wave
    common = math.gcd(rate, to)
    down, up = rate // common, to // common
    base = min(down, up) * 0.99
    half = int(6 * down / base * up) + 1  # the filter at `up` times the rate, centre in the middle
    t = np.arange(-half, half + 1) / (up * down) * base
    taps = np.where(np.abs(t) < 6, np.sinc(t) * np.cos(t * math.pi / 12) ** 2, 0) * base / down
    count = -(-len(wave) * up // down)
    # upfirdn's value i * down is at index i of the result; values before the centre are dropped.
    dense = signal.upfirdn(taps, wave, up, 1)[half:]
    dense = np.r_[dense, np.zeros(max(0, count * down - len(dense)))]
    return dense[::down][:count]


def random_sound(rng, rate):
    seconds = rng.uniform(0.01, 0.05)
    t = np.arange(int(rate * seconds)) / rate
    wave = sum(rng.uniform(0, 0.3) * np.sin(2 * np.pi * rng.uniform(50, rate / 2) * t)
               for _ in range(3))
    wave = np.stack([wave + rng.normal(0, 0.02, len(t)) for _ in range(rng.integers(1, 4))], -1)
    return np.clip(wave, -0.99, 0.99)


def mel_of(rng, wave, rate):
    window = int(rng.choice([64, 100, 128, 200, 256]))
    hop, bands = int(rng.integers(window // 4, window)), int(rng.integers(4, 24))
    recipe, low = int(rng.integers(2)), float(rng.choice([0, 60]))
    high = float(rng.choice([0, rate * 0.4]))
    frames = 1 + len(wave) // hop
    how, mode = ({}, "constant") if recipe == 0 else ({"htk": True, "norm": None}, "reflect")
    # Not center=True, whose last frame mirrors only what that frame holds.
    power = librosa.feature.melspectrogram(
        y=np.pad(wave.astype(np.float64), window // 2, mode=mode), sr=rate, n_fft=window,
        hop_length=hop, n_mels=bands, fmin=low, fmax=high or None, dtype=np.float64, center=False,
        **how)
    spec = [rate, window, hop, bands, recipe, low, high, frames]
    return np.array(spec, np.float64), librosa.power_to_db(power, top_db=None)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    rng = np.random.default_rng(int(sys.argv[3]) if len(sys.argv) > 3 else 17)
    arrays = {"count": np.array([count], np.int32)}
    for i in range(count):
        rate = int(rng.choice([8000, 11025, 16000, 22050]))
        out = io.BytesIO()
        form = FORMS[i % len(FORMS)]
        soundfile.write(out, random_sound(rng, rate), rate, format="WAVEX" if i % 4 == 3 else "WAV",
                        subtype=form)
        wave, _ = soundfile.read(io.BytesIO(out.getvalue()), dtype="float64", always_2d=True)
        wave = wave.mean(1)
        to = int(rng.choice([8000, 11025, 16000, 22050, 12000]))
        arrays[f"i{i}"] = np.frombuffer(out.getvalue(), np.uint8)
        arrays[f"w{i}"] = wave.astype(np.float32)
        arrays[f"to{i}"] = np.array([to], np.int32)
        arrays[f"r{i}"] = resampled(wave.astype(np.float32), rate, to).astype(np.float32)
        arrays[f"s{i}"], mel = mel_of(rng, wave.astype(np.float32), rate)
        arrays[f"m{i}"] = mel.astype(np.float32)
    np.savez_compressed(sys.argv[1], **arrays)


if __name__ == "__main__":
    main()
