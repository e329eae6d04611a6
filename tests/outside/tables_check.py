#!/usr/bin/env python3
"""loom train with nothing but a table, compared with a pipeline of scikit-learn.

  tables_check.py LOOM

Three tables are generated: passengers (classes, gaps, categories), houses (prices, categories,
dates) and rentals (hourly time stamps, counts). `loom train TABLE --target T` with its defaults and
MLPClassifier or MLPRegressor with theirs, after imputers, scalers and one-hot encoders, learn the
same file. Both are scored on rows that neither has seen: accuracy, or R2. The check fails if our
mean over several seeds is lower by more than 0.002. scikit-learn also has to give the outputs of
`predict` the score of `eval`.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

SEEDS, HELD_OUT, MARGIN = 3, 5000, 0.002


def loom(program: str, *arguments: object) -> str:
    ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"loom {' '.join(map(str, arguments))}\n{ran.stderr}")
    return ran.stdout


def holes(draw: np.random.Generator, values: np.ndarray, share: float) -> np.ndarray:
    return np.where(draw.random(len(values)) < share, None, values.astype(object))


def passengers(draw: np.random.Generator, rows: int) -> pd.DataFrame:
    """Survival depends on class, sex, age and the size of the family."""
    level, sex = draw.choice([1, 2, 3], rows, p=[0.25, 0.2, 0.55]), draw.integers(0, 2, rows)
    age, family = draw.gamma(5, 6, rows).round(1), draw.poisson(0.9, rows)
    fare = (draw.gamma(2, 12, rows) * (4 - level) ** 1.5).round(2)
    port = draw.choice(["Cherbourg", "Queenstown", "Southampton"], rows, p=[0.2, 0.1, 0.7])
    odds = 2.4 * sex - 0.9 * (level - 2) - 0.03 * (age - 28) - 0.4 * np.maximum(family - 2, 0) - 0.9
    odds = odds + 1.2 * (age < 12) + 0.4 * (port == "Cherbourg") - 0.9 * sex * (level == 3)
    lives = draw.random(rows) < 1 / (1 + np.exp(-1.5 * odds))
    return pd.DataFrame({
        "PassengerId": np.arange(1, rows + 1), "Pclass": level,
        "Name": [f"Passenger, Mr. No {k}" for k in range(rows)],
        "Sex": np.array(["male", "female"])[sex], "Age": holes(draw, age, 0.2), "Family": family,
        "Fare": fare, "Cabin": holes(draw, draw.choice(list("ABCDEFG"), rows), 0.75),
        "Embarked": holes(draw, port, 0.01), "Survived": np.where(lives, "yes", "no"),
    })  # fmt: skip


def houses(draw: np.random.Generator, rows: int) -> pd.DataFrame:
    """Prices are a product of area, place, age and the time of the sale."""
    area, rooms = draw.gamma(9, 12, rows).round(), draw.integers(1, 8, rows)
    place, built = draw.integers(0, 12, rows), draw.integers(1900, 2020, rows)
    sold = pd.Timestamp("2018-01-01") + pd.to_timedelta(draw.integers(0, 2000, rows), "D")
    years = (sold - pd.Timestamp("2018-01-01")).days.to_numpy() / 365
    heat = draw.choice(["gas", "oil", "pump", "stove"], rows, p=[0.5, 0.3, 0.15, 0.05])
    worth = np.linspace(-0.5, 0.6, 12)[place] + 0.06 * years + 0.003 * (built - 1960)
    worth = worth + 0.05 * np.sin(2 * np.pi * years) + 0.15 * (heat == "pump")
    price = 2500 * area**0.9 * np.exp(worth + 0.02 * rooms + draw.normal(0, 0.08, rows))
    return pd.DataFrame({
        "area": area, "rooms": holes(draw, rooms, 0.05), "place": [f"Place {k}" for k in place],
        "built": holes(draw, built, 0.1), "heating": heat, "sold": sold.strftime("%Y-%m-%d"),
        "price": price.round(-2),
    })  # fmt: skip


def rentals(draw: np.random.Generator, rows: int) -> pd.DataFrame:
    """Counts depend on the hour, differently on working days, on the season and the weather."""
    hours = np.sort(draw.choice(2 * 8760, rows, replace=False))
    times = pd.Timestamp("2011-01-01") + pd.to_timedelta(hours, "h")
    hour, work = times.hour.to_numpy(), times.dayofweek.to_numpy() < 5
    season = np.sin(2 * np.pi * (times.dayofyear.to_numpy() - 100) / 365)
    weather = draw.choice(["clear", "mist", "rain", "storm"], rows, p=[0.6, 0.25, 0.12, 0.03])
    warm = (12 + 12 * season + 5 * np.sin(2 * np.pi * (hour - 9) / 24) + draw.normal(0, 3, rows))
    rush = np.exp(-((hour - 8) ** 2) / 3) + 1.3 * np.exp(-((hour - 17.5) ** 2) / 5)
    idle = np.exp(-((hour - 14) ** 2) / 18)
    rate = 40 + 400 * np.where(work, rush, idle) + 120 * ((hour > 6) & (hour < 22))
    dull = pd.Series(weather).map({"clear": 1, "mist": 0.85, "rain": 0.5, "storm": 0.25})
    rate = rate * (0.6 + 0.02 * warm.clip(0, 30)) * dull.to_numpy() * (1 + 0.4 * (hours > 8760))
    return pd.DataFrame({
        "time": times.strftime("%Y-%m-%d %H:%M:%S"), "weather": weather,
        "temperature": holes(draw, warm.round(1), 0.03), "wind": draw.gamma(2, 6, rows).round(1),
        "holiday": np.where(draw.random(rows) < 0.03, "yes", "no"), "count": draw.poisson(rate),
    })  # fmt: skip


# name, table, rows that train, target, columns that are not inputs, dates
CASES = [
    ("passengers", passengers, 3000, "Survived", ["PassengerId", "Name"], []),
    ("houses", houses, 3000, "price", [], ["sold"]),
    ("rentals", rentals, 4000, "count", [], ["time"]),
]


def prepared(frame: pd.DataFrame, case) -> pd.DataFrame:
    """Steps that people write by hand: unused columns dropped, dates as numbers of their parts."""
    _, _, _, target, unused, dates = case
    frame = frame.drop(columns=[target, *unused])
    for name in dates:
        d = pd.to_datetime(frame.pop(name)).dt
        parts = {"year": d.year, "month": d.month, "day": d.day, "weekday": d.dayofweek}
        if d.hour.any():
            parts["hour"] = d.hour
        frame = frame.assign(**{f"{name} {part}": values for part, values in parts.items()})
    return frame


def theirs(train: pd.DataFrame, test: pd.DataFrame, case, seed: int) -> float:
    target = case[3]
    x = prepared(train, case)
    texts = [name for name in x if not pd.api.types.is_numeric_dtype(x[name])]
    numbers = [name for name in x if name not in texts]
    columns = ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        ("texts", make_pipeline(SimpleImputer(strategy="most_frequent"),
                                OneHotEncoder(handle_unknown="ignore")), texts),
    ])  # fmt: skip
    if pd.api.types.is_numeric_dtype(train[target]):
        network = MLPRegressor(max_iter=500, random_state=seed)
        network = TransformedTargetRegressor(network, transformer=StandardScaler())
    else:
        network = MLPClassifier(max_iter=500, random_state=seed)
    model = make_pipeline(columns, network).fit(x, train[target])
    return model.score(prepared(test, case), test[target])


def ours(program: str, folder: Path, test: pd.DataFrame, target: str, seed: int) -> float:
    net, answers = folder / "m.entity", folder / "answers.csv"
    loom(program, "train", folder / "train.csv", "--target", target, "--split", 0.8, "--seed", seed,
         "--quiet", "--force", "-o", net)  # fmt: skip
    report = json.loads(loom(program, "eval", net, folder / "test.csv", "--json"))
    loom(program, "predict", net, folder / "test.csv", "-o", answers, "--force", "--quiet")
    said = pd.read_csv(answers).iloc[:, 0]
    classes = report.get("accuracy") is not None
    score = (accuracy_score if classes else r2_score)(test[target], said)
    found = report["accuracy" if classes else "r2"]
    if abs(found - score) > 1e-5:
        sys.exit(f"{target}: eval says {found}, scikit-learn finds {score} in predict's answers")
    return found


def main() -> None:
    program, failed = sys.argv[1], 0
    warnings.filterwarnings("ignore")
    print(f"{'table':<12} {'rows':>5} {'score':>9} {'scikit-learn':>13} {'loom':>8}")
    for number, case in enumerate(CASES):
        name, make, rows, target = case[:4]
        frame = make(np.random.default_rng(number + 1), rows + HELD_OUT)
        frame = frame.sample(frac=1, random_state=number)
        a, b = [], []
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            frame[:rows].to_csv(folder / "train.csv", index=False)
            frame[rows:].to_csv(folder / "test.csv", index=False)
            train, test = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "test"))
            for seed in range(1, SEEDS + 1):
                a.append(ours(program, folder, test, target, seed))
                b.append(theirs(train, test, case, seed))
        worse = np.mean(a) < np.mean(b) - MARGIN
        failed += int(worse)
        kind = "R2" if pd.api.types.is_numeric_dtype(test[target]) else "accuracy"
        print(f"{name:<12} {rows:>5} {kind:>9} {np.mean(b):>13.4f} {np.mean(a):>8.4f}"
              f"{'  lower' if worse else ''}", flush=True)  # fmt: skip
        if os.environ.get("TABLES_CHECK_SEEDS"):
            print("  by seed:", np.round(b, 4), np.round(a, 4))
    print(f"{len(CASES) - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
