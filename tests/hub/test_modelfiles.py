"""Random Modelfiles: `loom info --json` has the fields that were written. The server has their
parameters.

LOOM_PROGRAM=build/dev/cli/loom python3 -m unittest discover -s tests/hub
"""

import json
import random
import re
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

from hub_case import DEADLINE, LOOM, ROOT

STORIES = ROOT / "models" / "stories.entity"
NUMBERS = {
    "temperature": lambda r: f"{r.uniform(0, 2):.3f}",
    "top_k": lambda r: str(r.randrange(0, 500)),
    "top_p": lambda r: f"{r.uniform(0.1, 1):.2f}",
    "seed": lambda r: str(r.randrange(2**63)),
    "num_predict": lambda r: str(r.randrange(-2, 300)),
    "num_ctx": lambda r: str(r.randrange(1, 512)),
    "repeat_last_n": lambda r: str(r.randrange(-1, 99)),
    "presence_penalty": lambda r: f"{r.uniform(-2, 2):.2f}",
}
WORDS = ["be", "kind", "Äpfel", '"quoted"', "#7", "{{ x }}", "a  b", "FROM", "日本"]


def words(r: random.Random) -> str:
    return " ".join(r.choices(WORDS, k=r.randrange(1, 6)))


def written(r: random.Random, text: str) -> str:
    """A value in one of the forms that keep it."""
    forms = []
    if "\n" not in text and not text.startswith('"'):
        forms += [text, f"{text}   "]
    if "\n" not in text:
        forms.append(f'"{text}"')
    if '"""' not in text and not text.endswith('"') and not text.startswith("\n"):
        forms.append(f'"""{text}"""')
    return r.choice(forms)


def random_file(r: random.Random) -> tuple[str, dict]:
    """A text, and the fields that it has."""
    fields: dict = {"from": str(STORIES), "parameters": {}}
    lines = [("FROM", str(STORIES))]
    for name in r.sample(sorted(NUMBERS), r.randrange(len(NUMBERS) + 1)):
        fields["parameters"][name] = NUMBERS[name](r)
        lines.append((f"PARAMETER {name}", fields["parameters"][name]))
    for _ in range(r.randrange(3)):
        stop = words(r)
        fields["parameters"].setdefault("stop", []).append(stop)
        lines.append(("PARAMETER stop", written(r, stop)))
    if r.random() < 0.5:
        fields["system"] = r.choice([words(r), f"{words(r)}\n\n{words(r)} x"])
        lines.append(("SYSTEM", written(r, fields["system"])))
    turns = []
    for _ in range(r.randrange(3)):
        for role in ("user", "assistant"):
            turns.append({"role": role, "content": words(r)})
    if turns:
        fields["messages"] = turns
    others = lines[1:]
    r.shuffle(others)
    if "stop" in fields["parameters"]:  # their order is the order in the file
        order = [text for name, text in others if name == "PARAMETER stop"]
        fields["parameters"]["stop"] = [unquoted(text) for text in order]
    said = [(f"MESSAGE {turn['role']}", written(r, turn["content"])) for turn in turns]
    text = ""
    for name, value in [lines[0], *others, *said]:
        first, *rest = name.split(" ", 1)
        first = r.choice([first, first.lower(), first.title()])
        text += r.choice(["", "", "# a comment\n", "\n", "  # FROM x\n"])
        text += r.choice(["", "  "]) + " ".join([first, *rest, value]) + r.choice(["\n", "\r\n"])
    return text, fields


def unquoted(text: str) -> str:
    text = text.strip()
    for mark in ('"""', '"'):
        if len(text) > 2 * len(mark) - 1 and text.startswith(mark) and text.endswith(mark):
            return text[len(mark) : -len(mark)]
    return text


class Modelfiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "Modelfile"

    def loom(self, *more: str) -> str:
        ran = subprocess.run(
            [LOOM, *more], capture_output=True, text=True, timeout=DEADLINE,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def test_random_files_have_the_fields_that_were_written(self):
        for seed in range(60):
            text, fields = random_file(random.Random(seed))
            self.file.write_bytes(text.encode())
            with self.subTest(text):
                read = json.loads(self.loom("info", str(self.file), "--json"))["modelfile"]
                del read["path"]
                self.assertEqual(read | {"parameters": read.get("parameters", {})}, fields)

    def test_the_server_has_the_digits_of_a_parameter(self):
        """A seed that no float64 has, in the file and in a request."""
        own = {"seed": 2**53 + 1, "temperature": 1.2}
        lines = [f"PARAMETER {name} {value}\n" for name, value in own.items()]
        self.file.write_text(f"FROM {STORIES}\nPARAMETER num_predict 24\n{''.join(lines)}")
        server = subprocess.Popen(
            [LOOM, "serve", str(self.file), "--port", "0"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        address = next(m[0] for line in server.stdout if (m := re.search(r"http://[\d.:]+", line)))

        def reply(**fields) -> str:
            request = urllib.request.Request(
                f"{address}/completion", json.dumps({"prompt": "Once", **fields}).encode(),
                {"Content-Type": "application/json"},
            )  # fmt: skip
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return json.load(answer)["content"]

        self.assertEqual(reply(), reply(**own))
        self.assertNotEqual(reply(), reply(**own | {"seed": 2**53}))


if __name__ == "__main__":
    unittest.main()
