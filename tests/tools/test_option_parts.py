"""Parts of options: structs of core with some options of a struct, and how they are filled."""

import tempfile
import textwrap
import unittest
from pathlib import Path

import api_options
import api_options_parts
import generate_api
from api_options import Wrong

TOY = textwrap.dedent('''
    kinds = "include/loom/toy_kinds.hpp"
    structs = "include/loom/toy_options.hpp"
    [[enum]]
    name = "Loss"
    function = "loss"
    what = "loss"
    help = "A loss."
    values = [["automatic", "by the data"], ["mse", "squares"]]
    [[struct]]
    name = "Options"
    help = "Options."
    options = [
      { name = "loss", type = "Loss", default = "automatic", help = "Loss." },
      { name = "width", type = "float", default = 1.5, range = "(0, inf)", help = "Width." },
      { name = "share", type = "double", default = 0.25, help = "Share." },
      { name = "gate", type = "double?", help = "Gate." },
      { name = "rows", type = "int?", help = "Rows." },
    ]
    [[part]]
    name = "LossSpec"
    of = "Options"
    into = "Step"
    at = "loss"
    help = "A loss."
    members = [MEMBERS]
    more = """
    bool any() const;
    """
    ''')  # fmt: skip
# Options of training that fill_options() does not fill: api/train/trainer_options.cpp does, or the
# trainer of the public interface uses them.
ELSEWHERE = {"augment", "normalize", "engine"}


def part(members: str, saved: str = "") -> api_options_parts.Part:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.toml"
        toy = TOY.replace("MEMBERS", members)
        path.write_text(toy.replace('into = "Step"', f'into = "Step"\nsaved = "{saved}"'), "utf-8")
        return api_options_parts.parts(api_options.read(path))[0]


class Parts(unittest.TestCase):
    def test_a_member_has_the_type_and_default_of_its_option_or_its_own(self):
        for members, line in (
            ('"width"', "  float width = 1.5f;"),
            ('{ name = "size", option = "width" }', "  float size = 1.5f;"),
            ('{ name = "kind", option = "loss", default = "mse" }', "  Loss kind = Loss::mse;"),
            ('{ name = "share", type = "float" }', "  float share = 0.25f;"),
            ('"gate"', "  std::optional<double> gate{};"),
            ('{ name = "rows", type = "int64_t", default = -1 }', "  int64_t rows = -1;"),
        ):
            text = api_options_parts.structs([part(members)], [], "made")
            self.assertIn(f"\n{line}\n", text)
            self.assertIn("\n  bool any() const;\n};", text)

    def test_a_member_is_filled_from_its_option(self):
        for members, line in (
            ('"width"', "to.loss.width = from.width;"),
            ('{ name = "size", option = "width" }', "to.loss.size = from.width;"),
            ('{ name = "kind", option = "loss", unless = "automatic" }',
             "if (from.loss != Loss::automatic) to.loss.kind = from.loss;"),
            ('{ name = "share", type = "float" }',
             "to.loss.share = static_cast<float>(from.share);"),
            ('{ name = "gate", type = "std::optional<float>" }',
             "if (from.gate) to.loss.gate = static_cast<float>(*from.gate);"),
            ('{ name = "rows", type = "int64_t", default = -1 }',
             "if (from.rows) to.loss.rows = *from.rows;"),
        ):  # fmt: skip
            text = api_options_parts.fills([part(members)], "made")
            self.assertIn("void fill_options(const Options& from, Step& to) {", text)
            self.assertIn(f"    {line}\n", text)

    def test_checkpoints_have_what_a_part_saves(self):
        for saved, lines in (
            ("always", ['  visit("width", of.width);', '  visit("s", of.share);']),
            ("each", ['  if (of.width > 0) visit("width", of.width);',
                      '  if (of.share > 0) visit("s", of.share);']),
            ("share", ["  if (!(of.share > 0)) return;", '  visit("width", of.width);']),
        ):  # fmt: skip
            toy = part('"width", { name = "share", key = "s" }', saved)
            text = api_options_parts.saved([toy], "made")
            self.assertIn("void each_saved(const LossSpec& of, const Visit& visit) {", text)
            for line in lines:
                self.assertIn(f"\n{line}\n", text)

    def test_an_unknown_option_or_key_is_an_error(self):
        for members, words in (
            ('"height"', "Options has no option height"),
            ('{ name = "width", colour = "red" }', "colour is not one of"),
        ):
            with self.subTest(members), self.assertRaisesRegex(Wrong, words):
                part(members)
        with self.assertRaisesRegex(Wrong, "saved is width2; write always, each or a member"):
            part('"width"', "width2")

    def test_every_option_of_training_reaches_core(self):
        v = next(v for v in generate_api.vocabularies() if v.source == "training.toml")
        filled = {m.option.name for p in api_options_parts.parts(v) for m in p.members}
        options = {option.name for option in v.structs["TrainerOptions"].options}
        self.assertEqual(options - filled, ELSEWHERE)


if __name__ == "__main__":
    unittest.main()
