"""Valid descriptions of layers, and the code generated from them."""

import tempfile
import tomllib
import unittest
from pathlib import Path

import api_layers
import api_layers_python
import typescript_api
from api_layers import Wrong

ROOT = Path(__file__).resolve().parents[2]
ENUM = '[[enum]]\nname = "Mode"\nhelp = "How."\nvalues = ["plain", ["far", "afar"]]\n'
WIDTH = '{ name = "width", type = "int", range = "[2, 2^20]", help = "values of a row" }'
MODE = '{ name = "mode", type = "Mode", default = "far", help = "plain or afar" }'
SIZES = '{ name = "sizes", type = "ints", default = [], range = "[0, 9]", help = "extents" }'


def described(text: str) -> api_layers.Layers:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "layers.toml"
        path.write_text(ENUM + text, encoding="utf-8")
        return api_layers.read(path)


def layer(*fields: str, more: str = "id = 200") -> str:
    return (f'[[layer]]\nname = "ToySwap"\nheader = "layers"\nhelp = "Swaps [.., in]."\n{more}\n'
            f"fields = [{', '.join(fields)}]\n")  # fmt: skip


class Generated(unittest.TestCase):
    def setUp(self):
        self.layers = described(layer(WIDTH, MODE, SIZES))
        self.files = api_layers.generated(self.layers, "generated")

    def has(self, path: str, *lines: str) -> None:
        for line in lines:
            self.assertIn(f"\n{line}\n", self.files[path])

    def test_core_has_the_kind_its_fields_and_their_positions(self):
        self.has("src/layers/core/registry.def", "LOOM_LAYER(200, toy_swap, kToySwap)")
        self.has("src/layers/core/field_tables.hpp", "namespace toy_swap {",
                 "inline constexpr int kWidth = 0, kMode = 1, kSizes = 2;",
                 '    {"width", FieldType::integer, 2, 2, 1048576, "", "values of a row"},',
                 '    {"mode", FieldType::text, 0, 0, 0, "afar", "plain or afar"},',
                 '    {"sizes", FieldType::list, -1, 0, 9, "", "extents"},')  # fmt: skip

    def test_cpp_has_a_documented_struct_and_its_translation(self):
        self.has("include/loom/layers.hpp", "// Swaps [.., in].", "struct LOOM_API ToySwap {",
                 "  // Values of a row; 2 to 1048576.", "  int64_t width = 2;",
                 "  Mode mode = Mode::far;", "  Axes sizes = {};",
                 "enum class Mode : uint8_t { plain, far };")  # fmt: skip
        self.has("src/api/network/layers.cpp", '  LayerBuilder b("ToySwap");',
                 '  b.add("width", width);',
                 '  b.add("mode", word(kMode, mode));',
                 'constexpr const char* kMode[] = {"plain", "afar"};')  # fmt: skip

    def test_bindings_have_a_class_and_a_function(self):
        python = api_layers_python.python(self.layers, "generated")
        for line in ("class ToySwap(Layer):", '    """Swaps [.., in_].', "    width: int = OPEN",
                     '    mode: str = "afar"'.replace('"', "'"), "    sizes: Axes = ()"):
            self.assertIn(f"\n{line}\n", python)
        self.assertIn("export function ToySwap(width: number, options: { mode?: string; sizes?: "
                      "Axes } = {}): Layer {",
                      typescript_api.write_layers_typescript(self.layers))  # fmt: skip

    def test_a_block_has_no_number(self):
        files = api_layers.generated(described(layer(WIDTH, more="")), "generated")
        self.assertIn("\nLOOM_BLOCK(kToySwap)\n", files["src/layers/blocks/blocks.def"])
        self.assertNotIn("ToySwap", files["src/layers/core/registry.def"])

    def test_a_family_has_a_kind_per_number_of_axes(self):
        text = ('[[layer]]\nname = "Pool{}d"\ntype = "P{}"\nkind = "p{}"\nstruct = "Pools"\n'
                'ids = [7, 8, 9]\nheader = "layers"\nhelp = "Pools."\n')  # fmt: skip
        layers = described(text)
        self.assertEqual([(k.name, k.type, k.kind, k.id) for k in layers.kinds()],
                         [("Pool1d", "P1", "p1", 7), ("Pool2d", "P2", "p2", 8),
                          ("Pool3d", "P3", "p3", 9)])  # fmt: skip
        self.assertIn("using Pool2d = Pools<2>;", api_layers.header(layers, "layers", ""))

    def test_an_order_of_members_is_kept(self):
        more = 'id = 200\norder = ["sizes", "width", "mode"]\ncpp_order = ["mode"]'
        kind = described(layer(WIDTH, MODE, SIZES, more=more)).kinds()[0]
        self.assertEqual([f.name for f in kind.cpp_members()], ["mode", "sizes", "width"])
        self.assertEqual([f.name for f in kind.arguments()], ["width", "sizes", "mode"])

    def test_a_member_that_is_zero_may_stand_for_others(self):
        half = ('{ name = "half", type = "int", range = "[1, 9]", unset = "width / parts", '
                'help = "half" }')  # fmt: skip
        text = api_layers.translation(described(layer(WIDTH, half)), "")
        self.assertIn('b.add("half", half > 0 || parts < 1 ? half : width / parts);', text)


class Order(unittest.TestCase):
    """Programs give members by position, and in the order of the struct."""

    def setUp(self):
        self.layers = api_layers.read(ROOT / "api/layers.toml")
        members = Path(__file__).with_name("layer_members.toml")
        self.frozen = tomllib.loads(members.read_text(encoding="utf-8"))

    def check(self, found: dict[str, list[str]], frozen: dict[str, list[str]]) -> None:
        for name, members in frozen.items():
            with self.subTest(name):
                self.assertEqual(found[name][: len(members)], members)

    def test_members_of_cpp_keep_their_places(self):
        found = {row.struct or row.name: [getattr(m, "code", m) for m in row.cpp_members()]
                 for row in self.layers.rows}  # fmt: skip
        self.check(found, self.frozen["cpp"])

    def test_arguments_of_python_keep_their_places(self):
        found = {kind.name: [api_layers.python_name(f) for f in kind.arguments()]
                 for kind in self.layers.public()}  # fmt: skip
        self.check(found, self.frozen["python"])


class Mistakes(unittest.TestCase):
    def test_each_is_told_with_its_place(self):
        for text, message in (
            (layer(WIDTH.replace("range", "rnge")), "ToySwap.width: rnge is not one of"),
            (layer(WIDTH.replace("[2, ", "[2; ")), "ToySwap.width: range is '[2; 2^20]'"),
            (layer(WIDTH.replace('"int"', '"whole"')), "ToySwap.width: a whole has no range"),
            (layer(MODE.replace("Mode", "Mood")), "ToySwap.mode: type Mood is not known"),
            (layer(MODE.replace('"far"', '"near"')), "ToySwap.mode: near is not a value of Mode"),
            (layer(MODE.replace("plain or afar", "plain or far")),
             "ToySwap.mode: help does not name afar"),
            (layer(SIZES.replace("[]", "[10]")), "ToySwap.sizes: default 10 is not in its range"),
            (layer(WIDTH.replace("a row", "a row.")), "without a full stop"),
            (layer(WIDTH, more='id = 200\norder = ["mode"]'), "order does not name every member"),
            (layer(WIDTH, more='id = 200\ncpp_order = ["mode"]'), "there is no member mode"),
            (layer('"conv"'), "ToySwap: there is no group conv"),
            (layer(WIDTH) + layer(WIDTH, more='id = 201\ntype = "B"'),
             "two layers have the name ToySwap"),
            (layer(WIDTH) + layer(WIDTH), "two layers have the type ToySwap"),
        ):  # fmt: skip
            with self.subTest(message), self.assertRaises(Wrong) as caught:
                described(text)
            self.assertIn(message, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
