"""Tables as people have them: networks of for_table() compared with pandas and scikit-learn.

Random tables are written in many dialects. Their prepared columns are compared with those of
SimpleImputer, StandardScaler and OneHotEncoder, fitted to the rows that train.
"""

import datetime
import importlib.util
import io
import pickle
import unittest

import loom
import numpy as np
from support import PROGRAM, Scratch, needs_program, run, same_bits

try:
    import pandas as pd
    from pandas._libs.parsers import STR_NA_VALUES
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
except ImportError:
    raise unittest.SkipTest("pandas or scikit-learn is not installed") from None

FORMS = [(".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (".", "'"), (",", " ")]
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-16-le"]
MARKS = ["", "NA", "null", "NaN", "N/A", "None", "<NA>", "-", "?", "n/a", "#N/A"]
WORDS = [("false", "true"), ("No", "Yes"), ("n", "y"), ("F", "T"), ("off", "on"), ("False", "True")]
LEVELS = ["Köln", "Zürich", "a, b; c", 'say "hi"', "2nd", "two\nlines", "x|y"]
DATES = {
    "iso": "%Y-%m-%d", "iso_time": "%Y-%m-%d %H:%M:%S", "zulu": "%Y-%m-%dT%H:%M:%SZ",
    "german": "%d.%m.%Y", "german_time": "%d.%m.%Y %H:%M", "us": "%m/%d/%Y",
    "us_time": "%m/%d/%Y %I:%M %p", "slash": "%d/%m/%Y", "words": "%d %b %Y",
    "first": "%Y-%m-01", "clock": "%H:%M",
}  # fmt: skip
KINDS = ["number", "integer", "boolean", "few", "many", *DATES, "big", "tiny"]
TARGETS = ["number", "classes", "digits", "boolean", "integer"]
NUMBERS = ("number", "integer", "big", "tiny")
LIMIT, CASES = 8, 42
EXACT = {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}


def number_text(value, decimals, form):
    return f"{value:,.{decimals}f}".translate({ord("."): form[0], ord(","): form[1]})


def cells(draw, kind, rows, form):
    if kind in DATES:
        start = datetime.datetime(2019, 1, 1)
        days, seconds = draw.integers(0, 2000, rows), draw.integers(0, 86400, rows)
        times = [datetime.timedelta(int(d), int(s)) for d, s in zip(days, seconds)]
        return [(start + time).strftime(DATES[kind]) for time in times]
    if kind == "boolean":
        return list(np.array(WORDS[draw.integers(len(WORDS))])[draw.integers(0, 2, rows)])
    if kind in ("few", "classes"):
        return [LEVELS[k] for k in draw.integers(0, 3 if kind == "classes" else 7, rows)]
    if kind == "many":
        return [f"level {int(k):02}" for k in np.minimum(draw.exponential(5, rows), 29)]
    if kind == "integer":
        return [str(k) for k in draw.integers(-50, 900, rows)]
    if kind == "digits":
        return [f"{k},0" if form[0] == "," else str(k) for k in draw.integers(0, 3, rows)]
    if kind == "tiny":
        return [f"{v:.5e}".replace(".", form[0]) for v in draw.normal(0, 1e-9, rows)]
    return [number_text(v, 2, form) for v in draw.normal(3, 1e6 if kind == "big" else 20, rows)]


class Table:
    """A random table, its text, and what a reader may know: kinds of columns and the dialect."""

    def __init__(self, number):
        draw = np.random.default_rng(number)
        self.rows, self.form = int(draw.integers(60, 160)), FORMS[number % len(FORMS)]
        self.separator, self.newline = ",;\t|"[number % 4], ("\n", "\r\n", "\r")[number % 3]
        self.encoding, self.all_quoted = ENCODINGS[number % len(ENCODINGS)], number % 5 == 3
        self.header, self.end = number % 9 != 8, number % 7 != 6
        self.mark = MARKS[number % len(MARKS)]
        picked = [KINDS[(4 * number + k) % len(KINDS)] for k in range(4)] + ["number", "few"]
        picked += ["big"] if self.form[1] else []
        kinds = [(f"{kind}{k}", kind) for k, kind in enumerate(picked)]
        extra = {5: ("nothing", "empty"), 2: ("same", "constant"), 3: ("note", "text")}
        kinds += [extra[number % 6]] if number % 6 in extra else []
        if number % 3 == 0 and self.header:
            kinds.insert(0, ("id", "id"))
        place = [0, len(kinds) // 2, len(kinds)][number // 2 % 3]
        self.target_kind = TARGETS[number % len(TARGETS)]
        kinds.insert(place, ("aim", self.target_kind))
        if not self.header:
            kinds = [(f"column {k + 1}", kind) for k, (_, kind) in enumerate(kinds)]
        self.kinds, self.target = dict(kinds), kinds[place][0]
        self.columns = {name: self.column(draw, name, kind) for name, kind in kinds}

    def column(self, draw, name, kind):
        rows = self.rows
        if kind in ("id", "text", "empty", "constant"):
            by = {"id": "{}", "text": "note of {}", "empty": self.mark, "constant": "same"}[kind]
            return [by.format(row + 1) for row in range(rows)]
        texts = cells(draw, kind, rows, self.form)
        if self.newline == "\r":  # such files have no \n, not even in quotes
            texts = [text.replace("\n", " ") for text in texts]
        share = 0.1 if draw.random() < (0.3 if name == self.target else 0.6) else 0
        return [self.mark if draw.random() < share else text for text in texts]

    def quoted(self, text):
        needs = self.all_quoted or any(c in text for c in self.separator + '"\r\n')
        return '"' + text.replace('"', '""') + '"' if needs else text

    def bytes(self):
        lines = [list(self.columns)] if self.header else []
        lines += zip(*self.columns.values())
        text = self.newline.join(self.separator.join(map(self.quoted, line)) for line in lines)
        return (text + (self.newline if self.end else "")).encode(self.encoding)

    def write(self, folder):
        (folder / "table.csv").write_bytes(self.bytes())
        return folder / "table.csv"

    def network(self, data, seed):
        return loom.Network.for_table(
            data, target=self.target, validation_split=0.2, seed=seed, one_hot_limit=LIMIT
        )

    def frame(self):
        """The table as pandas reads it. Dates stay texts."""
        numeric = (*NUMBERS, "digits", "id")
        texts = {name: str for name, kind in self.kinds.items() if kind not in numeric}
        return pd.read_csv(
            io.BytesIO(self.bytes()), sep=self.separator, encoding=self.encoding, dtype=texts,
            decimal=self.form[0], thousands=self.form[1] or None, na_values=["-", "?"],
            header=0 if self.header else None, names=None if self.header else list(self.columns),
            **EXACT,
        )  # fmt: skip


def booleans(column):
    truth = {word: float(value) for pair in WORDS for value, word in enumerate(pair)}
    return column.map(truth).to_numpy(float)


def moments(column, kind):
    if kind == "clock":
        return pd.to_datetime("1970-01-01 " + column, format="%Y-%m-%d %H:%M")
    return pd.to_datetime(column, format=DATES[kind].replace("-01", "-%d"))


def imputed(values, train, strategy):
    """Values [n, 1] without gaps, and the column that tells gaps, if training has any."""
    made = SimpleImputer(strategy=strategy, add_indicator=True).fit(values[train])
    found = made.transform(values)
    return found[:, :1], found[:, 1:].astype(float)


def scaled(values, train):
    return StandardScaler().fit(values[train]).transform(values)


def one_hot(column, train):
    texts = column.to_numpy(object, na_value=np.nan)[:, None]
    values, gaps = imputed(texts, train, "most_frequent")
    counts = column.iloc[train].value_counts(dropna=True).to_dict()
    kept = sorted(sorted(counts), key=counts.get, reverse=True)[:LIMIT]
    hot = OneHotEncoder(categories=[sorted(kept)], handle_unknown="ignore")
    parts = [hot.fit(np.array(kept, object)[:, None]).transform(values).toarray()]
    if len(counts) > LIMIT:
        parts.append(np.array([[v in counts and v not in kept] for v in values[:, 0]], float))
    return [*parts, gaps]


def date_parts(column, kind, train):
    """Year, and sines and cosines of the parts that differ in the dates that train."""
    dates = moments(column, kind)
    seconds = (dates - pd.Timestamp(0)).dt.total_seconds().to_numpy()[:, None]
    _, gaps = imputed(seconds, train, "median")
    middle = pd.Series(seconds[train, 0]).quantile(0.5, interpolation="lower")
    filled = np.where(np.isnan(seconds), middle, seconds)
    d = pd.Series(pd.to_datetime(filled[:, 0], unit="s")).dt
    own, out = dates.iloc[train].dropna().dt, []
    if own.year.nunique() > 1:
        out.append(scaled(d.year.to_numpy(float)[:, None], train))
    months, days = own.month.nunique() > 1, (own.day != 1).any()
    times = (own.normalize() != dates.iloc[train].dropna()).any()
    for there, part, all_of_it in (
        (months, d.month - 1, 12), (days, d.day - 1, 31), (days, d.day_of_week, 7),
        (times, filled[:, 0] % 86400, 86400), (months, d.day_of_year - 1, 366),
    ):  # fmt: skip
        turn = 2 * np.pi * np.asarray(part)[:, None] / all_of_it
        out += [np.sin(turn), np.cos(turn)] if there else []
    return [*out, gaps]


def encoded(table, frame, train):
    parts = []
    for name, kind in table.kinds.items():
        if name == table.target or kind in ("id", "text", "empty", "constant"):
            continue
        if kind in DATES:
            parts += date_parts(frame[name], kind, train)
        elif kind in ("few", "many"):
            parts += one_hot(frame[name], train)
        elif kind == "boolean":
            parts += imputed(booleans(frame[name])[:, None], train, "most_frequent")
        else:
            filled, gaps = imputed(frame[name].to_numpy(float)[:, None], train, "median")
            parts += [scaled(filled, train), gaps]
    return np.hstack(parts)


def training_rows(rows, labels, seed):
    """The rows that a split of 0.8 trains, of rows that have targets."""
    y = np.zeros(len(rows), np.float32) if labels is None else pd.factorize(labels)[0]
    x = np.array(rows, np.float32)[:, None]
    return loom.Dataset(x, y).split(0.8, seed=seed)[0].x[:, 0].astype(int)


def weights(net):
    return {name: hash(net.parameter(name).tobytes()) for name, *_ in net.parameters()}


class Encoding(Scratch):
    def check(self, number):
        table, seed = Table(number), number + 1
        file = table.write(self.folder)
        net = table.network(file, seed)
        data, frame = loom.Dataset.from_file(file, net), table.frame()
        aim = frame[table.target]
        rows = np.flatnonzero(aim.notna())
        labels = None if table.target_kind in NUMBERS else aim.iloc[rows].astype(str)
        expected = encoded(table, frame, training_rows(rows, labels, seed))[rows]
        self.assertEqual(data.x.shape, expected.shape, (net.notes, net.table))
        np.testing.assert_allclose(data.x, expected, rtol=1e-5, atol=1e-6, err_msg=str(net.notes))
        if labels is None:
            np.testing.assert_array_equal(data.y[:, 0], aim.iloc[rows].to_numpy(np.float32))
        else:
            labels = [label.replace(".0", "") for label in labels]
            self.assertEqual(data.classes, sorted(set(labels)))
            self.assertEqual([data.classes[k] for k in data.y[:, 0]], labels)

    def test_values_are_those_of_scikit_learn(self):
        for number in range(CASES):
            with self.subTest(number=number):
                self.check(number)

    def test_every_mark_of_pandas_is_a_gap(self):
        text = "x,y\n" + "a,1.5\nb,2.5\n" * 12
        for mark in sorted(STR_NA_VALUES):
            with self.subTest(mark=mark):
                column = loom.Network.for_table(f"{text}{mark},1.5\n".encode()).table["columns"][0]
                self.assertEqual((column["levels"], column.get("indicator")), (["a", "b"], True))


class Frames(Scratch):
    def fitted(self, data, table):
        net = table.network(data, 4)
        net.fit(data, epochs=3, validation_split=0.2, verbose=False, seed=4)
        return net

    def test_a_frame_gives_the_bits_of_its_file(self):
        for number in range(0, CASES, 2):
            with self.subTest(number=number):
                table = Table(number)
                file, frame = table.write(self.folder), table.frame()
                a, b = self.fitted(file, table), self.fitted(frame, table)
                # Besides, a plan has the form of numbers in its file.
                self.assertEqual(a.table["columns"], b.table["columns"])
                self.assertEqual(weights(a), weights(b))
                self.assertTrue(same_bits(a.predict(frame), b.predict(file)))

    def test_the_bytes_of_a_file_are_a_table(self):
        table = Table(3)
        net = self.fitted(table.write(self.folder), table)
        self.assertTrue(same_bits(net.predict(table.bytes()), net.predict(table.frame())))
        self.assertEqual(weights(self.fitted(table.bytes(), table)), weights(net))

    def test_dicts_and_other_frames(self):
        table = Table(7)
        frame, typed = table.frame(), table.frame()
        for name, kind in table.kinds.items():
            if kind in DATES:
                typed[name] = moments(frame[name], kind)
            if kind == "few":
                typed[name] = frame[name].astype("category")
        columns = {name: column.tolist() for name, column in frame.items()}
        plain = {name: [v if v == v else None for v in c] for name, c in columns.items()}
        nullable = frame.convert_dtypes()
        others = [columns, plain, typed, nullable, {n: c.array for n, c in nullable.items()}]
        for module, make in (("polars", "DataFrame"), ("pyarrow", "table")):
            if importlib.util.find_spec(module):
                others.append(getattr(importlib.import_module(module), make)(plain))
        kept = weights(self.fitted(table.write(self.folder), table))
        for number, other in enumerate(others):
            with self.subTest(number=number, type=type(other)):
                self.assertEqual(weights(self.fitted(other, table)), kept)

    def test_rows_of_an_array_are_the_columns_in_order(self):
        frame = pd.DataFrame({"a": [1.0, 5, 9, 2] * 9, "b": [3.0, 8, 1, 4] * 9,
                              "y": [2.0, 7, 3, 9] * 9})  # fmt: skip
        net = loom.Network.for_table(frame, target="y")
        net.fit(frame[["a", "b"]].to_numpy(), frame["y"].to_numpy(), epochs=2, verbose=False)
        rows = frame[["a", "b"]].to_numpy()
        np.testing.assert_array_equal(net.predict(rows), net.predict(frame))
        with self.assertRaisesRegex(loom.InvalidArgumentError, r"has 2 columns \(a, b\), not 3"):
            net.predict(frame.to_numpy())

    def test_the_file_of_training_does_not_change_a_frame(self):
        values = np.random.default_rng(1).uniform(1000, 9000, 40).round(2)
        lines = ["x;y"] + [f"{number_text(v, 2, (',', '.'))};{k}" for k, v in enumerate(values)]
        net = loom.Network.for_table("\n".join(lines).encode())
        frame = pd.DataFrame({"x": [2.345, 7.125], "y": [1, 2]})  # three decimals, as in 2.345,00
        column = net.table["columns"][0]
        self.assertAlmostEqual(column["mean"], values.mean())
        x = ((frame[["x"]] - column["mean"]) / column["deviation"]).to_numpy(np.float32)
        encoded_x = net.session(max_batch=len(x)).run(x)
        np.testing.assert_allclose(net.predict(frame), encoded_x, rtol=1e-5)

    def test_the_columns_of_a_frame_may_have_any_names(self):
        x = np.random.default_rng(1).normal(size=(40, 3))
        for names in ([0, 1, 2], [2021, 2022, 2023], ["2024-01-01", "2024-01-02", "y"]):
            with self.subTest(names=names):
                net = loom.Network.for_table(pd.DataFrame(x, columns=names))
                self.assertEqual([c["name"] for c in net.table["columns"]], list(map(str, names)))

    def test_texts_of_a_frame_do_not_change_its_numbers(self):
        x = np.delete(np.arange(1001, 1032) / 1000, [9, 19, 29])  # three decimals
        for note in ("1,5", "1;5;2;3", "1.234.567", "# 1"):
            with self.subTest(note=note):
                frame = pd.DataFrame({"note": [note, "a"] * 14, "x": x, "y": np.arange(28)})
                column = loom.Network.for_table(frame).table["columns"][1]
                self.assertAlmostEqual(column.get("mean", 0), x.mean(), msg=str(column))


def house_table(rows=90):
    draw = np.random.default_rng(5)
    area, city = draw.normal(90, 20, rows).round(1), draw.integers(0, 3, rows)
    return pd.DataFrame({
        "area": area, "city": np.array(["Bonn", "Oslo", "Rome"])[city],
        "age": np.where(draw.random(rows) < 0.1, np.nan, draw.integers(1, 90, rows)),
        "price": (1e5 + 3000 * area + 5e4 * city + draw.normal(0, 1e4, rows)).round(),
        "count": draw.poisson(5, rows), "w": np.resize([1, 2, 3], rows),
    })  # fmt: skip


class Predicting(Scratch):
    def setUp(self):
        super().setUp()
        self.frame = house_table()
        self.text = self.frame.to_csv(index=False)
        self.net = loom.Network.for_table(self.frame, target="price", drop=["w"])
        self.net.fit(self.frame, epochs=5, verbose=False)
        self.found = self.net.predict(self.frame)

    def test_columns_are_found_by_name(self):
        frame = self.frame
        more = frame.assign(more="text", n=1.5)[["n", "city", "more", "count", "age", "area"]]
        for other in (
            frame[frame.columns[::-1]], frame.drop(columns=["price", "w"]), more,
            {name: frame[name].tolist() for name in ("count", "age", "city", "area")},
        ):  # fmt: skip
            np.testing.assert_array_equal(self.net.predict(other), self.found)
        np.testing.assert_array_equal(self.net.predict(frame[3:4]), self.found[3:4])

    def test_rows_of_lists_are_rows_of_the_table(self):
        names = [c["name"] for c in self.net.table["columns"] if c["role"] == "input"]
        rows = [list(row) for row in self.frame[names].itertuples(index=False)]
        np.testing.assert_array_equal(self.net.predict(rows), self.found)
        with self.assertRaisesRegex(loom.InvalidArgumentError, "has 4 columns .*, not 1"):
            self.net.predict([[1.5]])

    def test_what_is_absent_or_wrong_is_named(self):
        odd = self.frame.assign(area=["1", "2", "wide"] * 30)
        for ask, frame, message in (
            (self.net.predict, self.frame.drop(columns="city"), "no column 'city'.*area, age"),
            (self.net.evaluate, self.frame.drop(columns="price"), "no column 'price'"),
            (self.net.predict, odd, "row 3, column 'area': 'wide' is not a number"),
        ):
            with self.assertRaisesRegex(loom.BadFileError, message):
                ask(frame)

    def test_an_unknown_level_is_all_zeros(self):
        text = self.text.replace("Oslo", "Lima")
        data = loom.Dataset.from_file(text.encode(), self.net, inputs_only=True)
        oslo = (self.frame["city"] == "Oslo").to_numpy()
        np.testing.assert_array_equal(data.x[:, 1:4].sum(1), 1.0 * ~oslo)
        self.assertRegex(" ".join(data.notes), f"{oslo.sum()} cells of column 'city'.*'Lima'")

    def test_the_plan_is_kept(self):
        self.net.save(self.folder / "net.entity")
        data = loom.Dataset.from_file(self.text.encode(), self.net)
        for other in (
            loom.load(str(self.folder / "net.entity")), pickle.loads(pickle.dumps(self.net)),
            loom.Network.load(self.net.save_bytes("safetensors")),
        ):  # fmt: skip
            self.assertEqual(other.table, self.net.table)
            np.testing.assert_array_equal(other.predict(self.frame), self.found)
        other = loom.Network.from_json(self.net.json())
        self.assertEqual(other.table, self.net.table)
        np.testing.assert_array_equal(loom.Dataset.from_file(self.text.encode(), other).x, data.x)

    def test_several_numbers_are_targets(self):
        for targets in (["area", "price"], ["price", "count"]):  # count: 1 to 10
            with self.subTest(targets=targets):
                net = loom.Network.for_table(self.frame, target=targets)
                data = loom.Dataset.from_file(self.text.encode(), net)
                np.testing.assert_array_equal(data.y, self.frame[targets].to_numpy(np.float32))

    def test_shuffle_is_that_of_fit(self):
        frame, how = self.frame, dict(validation_split=0.25, shuffle=False)
        a, b = (loom.Network.for_table(frame, target="price", **how) for _ in range(2))
        self.assertAlmostEqual(a.table["columns"][0]["mean"], frame["area"][:68].mean())
        data = loom.Dataset.from_file(self.text.encode(), b)
        train, rest = data.split(0.75, shuffle=False)
        b.fit(train, validation_data=rest, shuffle=False, verbose=False)
        self.assertEqual(a.fit(frame, verbose=False, **how).history, b.history.history)


class Windows(unittest.TestCase):
    def check(self, rows, window, horizon, stride, split):
        draw = np.random.default_rng(rows)
        frame = pd.DataFrame({"a": draw.normal(5, 2, rows), "y": draw.normal(100, 30, rows)})
        net = loom.Network.for_table(
            frame, window=window, horizon=horizon, stride=stride, validation_split=split
        )
        data = loom.Dataset.from_file(frame.to_csv(index=False).encode(), net)
        ends = np.arange(window - 1, rows - horizon, stride)
        keep = round((1 - split) * len(ends)) if split else len(ends)
        known = ends[keep - 1] + horizon + 1 if split else rows
        values = StandardScaler().fit(frame[:known].to_numpy()).transform(frame.to_numpy())
        expected = np.stack([values[end - window + 1 : end + 1] for end in ends])
        np.testing.assert_allclose(data.x, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(data.y[:, 0], frame["y"].to_numpy(np.float32)[ends + horizon])
        self.assertEqual(len(net.predict(frame)), rows - window + 1)
        with self.assertRaisesRegex(loom.BadFileError, f"too few for a window of {window}"):
            net.predict(frame[: window - 1])
        if split:
            train, rest = data.split(1 - split)
            np.testing.assert_array_equal(train.x, data.x[:keep])
            np.testing.assert_array_equal(rest.y, data.y[keep:])

    def test_samples_are_windows_in_order(self):
        for how in ((50, 5, 1, 1, 0.2), (61, 4, 3, 2, 0.25), (40, 2, 1, 1, 0), (33, 7, 2, 7, 0.5)):
            with self.subTest(how=how):
                self.check(*how)


@needs_program
class Program(Scratch):
    def test_the_program_and_python_give_the_same_numbers(self):
        out, answers = self.folder / "out.entity", self.folder / "answers.npz"
        for number in range(0, 20, 2):
            with self.subTest(number=number):
                table = Table(number)
                file = table.write(self.folder)
                run(PROGRAM, "train", file, "--target", table.target, "--split", 0.8, "--epochs", 3,
                    "--one-hot-limit", LIMIT, "--force", "-o", out, "--quiet")
                run(PROGRAM, "predict", out, file, "-o", answers, "--force", "--quiet")
                net, said = loom.load(str(out)), np.load(answers)
                np.testing.assert_array_equal(net.predict(table.frame()), said["outputs"])
                same = table.network(file, 1)
                self.assertEqual(net.table, same.table)
                # The program has its own defaults of training.
                same.fit(file, epochs=3, validation_split=0.2, verbose=False, schedule="cosine",
                         optimizer=loom.AdamW(rate=2e-3, weight_decay=1.0))
                self.assertEqual(weights(same), weights(net))
                if net.info["classes"]:
                    labels = [net.info["classes"][k] for k in said["labels"]]
                    self.assertEqual([str(v) for v in net.classify(file)], labels)


if __name__ == "__main__":
    unittest.main()
