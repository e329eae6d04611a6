"""Valid descriptions of options, and the code generated from them."""

import tempfile
import textwrap
import types
import unittest
from pathlib import Path

import api_options
import api_options_c
import api_options_docs
import api_options_python
import api_options_registry
import api_options_typescript
import generate_api
import typescript_api
from api_options import Wrong, range_text, read, sentence
from api_options_c import c_values

HEAD = 'kinds = "include/loom/a_kinds.hpp"\nstructs = "include/loom/a_options.hpp"\n'
ENUM = textwrap.dedent('''
    [[enum]]
    name = "Rule"
    function = "rule"
    what = "rule"
    help = "How it learns."
    values = [["plain", "gradients"], ["far_back", "from afar", "far-back"]]
    ''')  # fmt: skip


def described(options: str, enums: str = ENUM) -> api_options.Vocabulary:
    struct = f'[[struct]]\nname = "Options"\nhelp = "Options."\noptions = [{options}]\n'
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.toml"
        path.write_text(HEAD + enums + struct, encoding="utf-8")
        return read(path)


def option(text: str) -> api_options.Option:
    kind = '{ name = "rule", type = "Rule", default = "plain", help = "Rule." },'
    return described(f'{kind} {{ name = "x", help = "Share of it.", {text} }}').structs[
        "Options"
    ].options[1]


class Rows(unittest.TestCase):
    """Kinds that have a row in a file of their own (decision 0092)."""

    def registry(self, more: str) -> str:
        v = described('{ name = "kind", type = "Rule", default = "plain", help = "Rule." }, '
                      '{ name = "beta", type = "float?", help = "Share." }',
                      f"{ENUM}{more}\n")  # fmt: skip
        return api_options_registry.generated([v], "made").get("src/learn/rules/registry.cpp", "")

    def test_each_value_has_its_row_in_the_order_of_the_enum(self):
        text = self.registry('rows = "learn/rules"')
        self.assertIn('#include "learn/rules/rule.hpp"', text)
        self.assertIn("    &kPlainRule,\n    &kFarBackRule,\n", text)
        self.assertIn("const RuleDef& rule_def(loom::Rule value)", text)

    def test_a_value_may_have_none(self):
        text = self.registry('rows = "learn/rules"\nno_row = ["plain"]')
        self.assertIn("    nullptr,\n    &kFarBackRule,\n", text)
        self.assertNotIn("kPlainRule", text)

    def test_unset_options_are_filled_from_another_struct(self):
        text = self.registry('rows = "learn/rules"')
        self.assertIn("void fill_unset(Options& to, const Options& from) {\n"
                      "  if (!to.beta) to.beta = from.beta;\n}", text)  # fmt: skip

    def test_the_fields_of_a_struct_without_unset_options_are_visited(self):
        v = described('{ name = "kind", type = "Rule", default = "plain", help = "Rule." }, '
                      '{ name = "every", type = "int", default = 1, help = "Period." }',
                      f'{ENUM}rows = "learn/rules"\n')  # fmt: skip
        files = api_options_registry.generated([v], "made")
        text = files["src/learn/rules/fields.hpp"]
        self.assertIn("void each_field(const Options& of, const Visit& visit) {\n"
                      '  visit("every", of.every);\n}', text)  # fmt: skip

    def test_an_enum_without_rows_has_no_list(self):
        self.assertEqual(self.registry(""), "")


class Descriptions(unittest.TestCase):
    def test_a_range_is_told_in_words(self):
        for range_, words in (
            ("", ""),
            ("[0, 1]", "0 to 1"),
            ("(0, 1)", "between 0 and 1"),
            ("(0, 1]", "above 0, up to 1"),
            ("[0, 1)", "from 0, below 1"),
            ("[1, inf)", "1 or more"),
            ("(0, inf)", "above 0"),
        ):
            found = option(f'type = "double", default = 0.5, range = "{range_}"')
            self.assertEqual(range_text(found), words)

    def test_a_sentence_says_what_it_is_for_its_range_its_unit_and_what_unset_means(self):
        found = option('type = "int?", range = "[1, 9]", unit = "epochs", for = "rule=far_back", '
                       'unset = "4"')  # fmt: skip
        self.assertEqual(sentence(found), "far_back: share of it; 1 to 9 epochs. Unset: 4.")

    def test_the_help_lists_the_texts_of_an_enum(self):
        made = described('{ name = "x", type = "words", names = "Rule", help = "Of: {names}." }')
        self.assertEqual(made.structs["Options"].options[0].help, "Of: plain, far-back.")
        for text in ('names = "Rule", help = "None."', 'names = "Rules", help = "{names}."'):
            with self.assertRaises(Wrong):
                described(f'{{ name = "x", type = "words", {text} }}')

    def test_members_are_those_of_cpp(self):
        for text, member in (
            ('type = "bool", default = true', "bool x = true;"),
            ('type = "float", default = 0.1', "float x = 0.1f;"),
            ('type = "float", default = 2.0', "float x = 2;"),
            ('type = "double", default = 0.001', "double x = 0.001;"),
            ('type = "int?"', "std::optional<int64_t> x{};"),
            ('type = "texts"', "std::vector<std::string> x{};"),
            ('type = "Rule", default = "far_back"', "Rule x = Rule::far_back;"),
        ):
            kind = '{ name = "rule", type = "Rule", default = "plain", help = "Rule." },'
            made = described(f'{kind} {{ name = "x", help = "Share of it.", {text} }}')
            header = api_options.structs_header(made, "generated")
            self.assertIn(f"\n  {member}\n", header)

    def test_what_is_wrong_is_told_with_its_place(self):
        for text, words in (
            ('type = "number", default = 1', "type number is not known"),
            ('type = "double"', "has no default"),
            ('type = "double", default = 1.0, range = "0..1"', "range is 0..1"),
            ('type = "bool", default = true, range = "[0, 1]"', "a bool has no range"),
            ('type = "Rule", default = "other"', "other is not a value of Rule"),
            ('type = "bool", default = true, for = "rule=other"', "rule has no value other"),
            ('type = "bool", default = true, colour = "red"', "colour is not one of"),
        ):
            with self.subTest(text), self.assertRaises(Wrong) as caught:
                option(text)
            self.assertIn("Options", str(caught.exception))
            self.assertIn(words, str(caught.exception))


_ROW = '{ name = "toy", group = "all", type = "float", default = 0.5, range = "(0, 1]", ' \
       'was = ["--toi"], help = "A toy." },'
TOY = textwrap.dedent('''
    [[struct]]
    name = "Inner"
    flat = "inner_"
    help = "Inside."
    options = [{ name = "width", type = "int", default = 3, range = "[1, 9]", help = "Width." }]
    [[struct]]
    name = "Options"
    c = "loom_toy_options"
    kind = "toy"
    help = "Options."
    groups = [["all", "All"]]
    options = [
      { name = "rule", group = "all", type = "Rule", default = "plain", help = "Rule." },
      ROW
      { name = "still", c = "!moves", group = "all", type = "bool", default = true, help = "Is." },
      { name = "inner", group = "all", type = "Inner", help = "Inside." },
    ]
    ''').replace("ROW", _ROW)  # fmt: skip


OTHER = textwrap.dedent('''
    structs = "include/loom/b_options.hpp"
    uses = ["a.toml"]
    [[struct]]
    name = "Other"
    kind = "other"
    help = "Options."
    options = [
      { name = "rule", type = "Rule", default = "plain", help = "Rule." },
      { name = "rules", type = "Rule[]", default = ["far_back"], help = "Rules." },
    ]
    ''')  # fmt: skip


class ToyOption(unittest.TestCase):
    """An option that is written in one place is on every surface."""

    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.toml"
            path.write_text(HEAD + ENUM + TOY, encoding="utf-8")
            self.toy = read(path)
        self.struct = self.toy.structs["Options"]

    def test_in_cpp(self):
        header = api_options.structs_header(self.toy, "generated")
        self.assertIn("  // A toy; above 0, up to 1.\n  float toy = 0.5f;", header)
        rows = "\n".join(api_options.table(self.struct, self.toy))
        self.assertIn('{"toy", "toy", "toi", "All", "float",', rows)
        self.assertIn('{"inner.width", "width", "", "All", "int",', rows)

    def test_in_c(self):
        fields = [["float", "toy", ""], ["int32_t", "moves", ""], ["int64_t", "inner_width", ""],
                  ["loom_rule", "rule", ""]]  # fmt: skip
        structs = [{"name": "loom_toy_options", "fields": fields}]
        text = api_options_c.c_reader(self.toy, structs, {}, "generated")
        self.assertIn("to.toy = non_zero(from.toy, to.toy);", text)
        self.assertIn("to.still = from.moves == 0;", text)
        self.assertIn("to.inner.width = non_zero(from.inner_width, to.inner.width);", text)
        self.assertIn('LOOM_ASSIGN(to.rule, enum_of<Rule>(from.rule, "rule"));', text)

    def test_in_python(self):
        of = ", Options but rule"
        begin, end = api_options_python.BEGIN, api_options_python.END
        hand = (f"    f(\n        {begin}{of}\n        {end}\n"
                f'    """\n    {api_options_python.DOC}{of}:\n    """\n')  # fmt: skip
        text = api_options_python.section(hand, [self.toy])
        self.assertIn("        toy: float = 0.5,\n", text)
        self.assertIn("    toy: A toy; above 0, up to 1.\n", text)
        self.assertIn("        inner: Optional[Inner] = None,\n", text)
        self.assertNotIn("rule: Union", text)
        self.assertNotIn("    rule: Rule.", text)
        self.assertEqual(api_options_python.section(text, [self.toy]), text)
        self.assertIn("class Inner:", api_options_python.module([self.toy], "generated"))
        with self.assertRaisesRegex(Wrong, "no option other"):
            api_options_python.section(hand.replace("but rule", "but other"), [self.toy])

    def test_in_typescript(self):
        text = api_options_typescript.module(self.toy, "generated")
        self.assertIn("  /** A toy; above 0, up to 1. */\n  toy?: number;", text)
        self.assertIn("  innerWidth?: number;", text)
        self.assertIn('"rule", "toy", "still", "innerWidth"', text)

    def test_in_docs(self):
        text = api_options_docs.page(self.toy, "generated")
        self.assertIn("| `toy` | `--toy` | float | 0.5 | A toy; above 0, up to 1. |", text)
        self.assertIn("| `still` | `--no-still` | bool | true |", text)


FIELDS = textwrap.dedent('''
    [[struct]]
    name = "Draws"
    rows = true
    help = "Draws."
    options = [
      { name = "share", type = "float", default = 0.5, range = "(0, 1]", help = "Share." },
      { name = "bans", type = "tokens", help = "Tokens." },
      { name = "bias", type = "biases", help = "Biases." },
    ]
    [[struct]]
    name = "Write"
    rows = true
    c = "loom_write"
    help = "Texts."
    options = [
      { name = "draws", type = "Draws", help = "Draws." },
      { name = "window", type = "int", default = 64, help = "Window." },
      { name = "ends", type = "texts", help = "Ends." },
      { name = "form", type = "text", help = "Form." },
      { name = "quiet", type = "bool", default = false, help = "Quiet." },
    ]
    ''')  # fmt: skip


class Fields(unittest.TestCase):
    """A struct that is one in C, with a struct inside whose options have names of their own."""

    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.toml"
            path.write_text(HEAD + FIELDS, encoding="utf-8")
            self.v = read(path)
        rows = [["float", "share", ""], ["const int32_t *", "bans", ""],
                ["int32_t", "ban_count", ""],
                ["const loom_token_bias *", "bias", ""], ["int32_t", "bias_count", ""],
                ["int32_t", "has_window", ""], ["int64_t", "window", ""],
                ["int32_t", "end_count", ""], ["const char *const *", "ends", ""],
                ["const char *", "form", "by hand"], ["int32_t", "quiet", ""]]  # fmt: skip
        self.structs = [{"name": "loom_write", "fields": rows}]

    def test_every_field_of_c_is_read(self):
        text = api_options_c.c_reader(self.v, self.structs, {}, "generated")
        for line in (
            "to.draws.share = non_zero(from.share, to.draws.share);",
            'LOOM_ASSIGN(const auto bans, list_of(from.bans, from.ban_count, "bans"));',
            "to.draws.bans.assign(bans.begin(), bans.end());",
            "for (const auto& row : bias) to.draws.bias.push_back({row.id, row.bias});",
            "if (from.has_window != 0) to.window = from.window;",
            'LOOM_ASSIGN(to.ends, texts_of(from.ends, from.end_count, "ends"));',
            'to.form = text_or(from.form, "");',
        ):
            self.assertIn(f"  {line}\n", text)

    def test_a_field_without_a_text_gets_that_of_its_option(self):
        api_options_c.fill_docs([self.v], self.structs)
        docs = {name: doc for _, name, doc, _ in self.structs[0]["fields"]}
        self.assertEqual(docs["share"], "Share; above 0, up to 1. 0: 0.5.")
        self.assertEqual(docs["window"], "Window. Unset: 64.")
        self.assertEqual(docs["has_window"], "1: `window` counts")
        self.assertEqual(docs["form"], "by hand")

    def test_a_field_of_a_boolean_option_is_a_boolean_whatever_its_text(self):
        api_options_c.fill_docs([self.v], self.structs)
        flags = [name for _, name, _, flag in self.structs[0]["fields"] if flag]
        self.assertEqual(flags, ["quiet"])
        field = generate_api.Variable("int32_t", "quiet", "Quiet.", True)
        plain = types.SimpleNamespace(callbacks={}, enums={})
        self.assertEqual(typescript_api.wasm_kind(plain, field), "bool")

    def test_parameters_of_python_are_flat(self):
        begin, end = api_options_python.BEGIN, api_options_python.END
        text = api_options_python.section(f"    {begin}, Write\n    {end}\n", [self.v])
        for line in (
            "share: float = 0.5,",
            "bans: Sequence[int] = (),",
            "bias: Optional[Mapping[int, float]] = None,",
            "window: int = 64,",
            'form: str = "",',
        ):
            self.assertIn(f"    {line}\n", text)
        module = api_options_python.module([self.v], "generated")
        self.assertIn('WRITE_OPTIONS = (\n    "share",\n    "bans",\n', module)
        self.assertIn('WRITE_NONZERO = {\n    "share": 0.5,\n    "window": 64,\n}', module)

    def test_rows_are_of_one_struct_and_checks_do_not_need_their_texts(self):
        source = api_options.source(self.v, {}, "generated")
        self.assertEqual(source.count('{"share", "share"'), 1)
        self.assertNotIn('"bans"', source)
        self.assertIn("core::check_options(core::kLimits<kDraws>, &options)", source)
        self.assertEqual(self.v.named_structs(), [])
        self.assertEqual([s.name for s in self.v.user_structs()], ["Draws", "Write"])


class Files(unittest.TestCase):
    """Files that use the enums and structs of others."""

    def setUp(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = Path(folder) / "a.toml", Path(folder) / "b.toml"
            first.write_text(HEAD + ENUM + TOY, encoding="utf-8")
            second.write_text(OTHER, encoding="utf-8")
            self.first, self.second = read(first), read(second)

    def test_an_enum_of_another_file_is_declared_and_named_there_alone(self):
        both = [self.first, self.second]
        self.assertEqual([e.name for e in self.second.own_enums()], [])
        shared = api_options.shared_enums(both)
        self.assertEqual(list(shared), ["Rule"])
        text = api_options.source(self.second, shared, "generated")
        self.assertIn('enum_value(&static_cast<Other*>(o)->rule, "rule", words_of(Rule{}))', text)
        self.assertIn('enum_list(&static_cast<Other*>(o)->rules, "rule", words_of(Rule{}))', text)
        self.assertNotIn("kRule[]", text)
        self.assertIn("words_of(Rule)", api_options.source(self.first, shared, "generated"))
        kinds = api_options_c.option_kinds([self.second, trainer()], "generated")
        self.assertIn('{"other", [] { return AnyOptions(Other{}); }},', kinds)

    def test_a_list_of_an_enum_is_one_everywhere(self):
        header = api_options.structs_header(self.second, "generated")
        self.assertIn("  std::vector<Rule> rules = {Rule::far_back};", header)
        struct = self.second.structs["Other"]
        parameter = api_options_python.parameter(struct.options[1], struct, self.second)
        self.assertEqual(
            parameter, 'rules: Union[RuleName, Sequence[RuleName]] = ("far_back",)'
        )
        with self.assertRaisesRegex(Wrong, "near is not a value of Rule"):
            described('{ name = "x", type = "Rule[]", default = ["near"], help = "Rules." }')


def trainer() -> api_options.Vocabulary:
    """The common end of every list of kinds."""
    text = OTHER.replace("Other", "TrainerOptions").replace('"other"', '"trainer"')
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.toml").write_text(HEAD + ENUM, encoding="utf-8")
        (Path(folder) / "b.toml").write_text(text, encoding="utf-8")
        return read(Path(folder) / "b.toml")


class Enums(unittest.TestCase):
    def test_numbers_of_c_begin_with_what_unset_means(self):
        rule = described("").enums["Rule"]
        self.assertEqual(c_values(rule, ""),
                         [["PLAIN", 0, "gradients"], ["FAR_BACK", 1, "from afar"]])  # fmt: skip
        self.assertEqual([v[:2] for v in c_values(rule, "AUTOMATIC")],
                         [["AUTOMATIC", 0], ["PLAIN", 1], ["FAR_BACK", 2]])  # fmt: skip
        self.assertEqual([v[:2] for v in c_values(rule, "FAR_BACK")],
                         [["FAR_BACK", 0], ["PLAIN", 1]])  # fmt: skip

    def test_both_spellings_are_read(self):
        text = "\n".join(api_options.words(described("").enums["Rule"]))
        self.assertIn('{"far-back", "far_back"},', text)
        self.assertIn('{"plain", ""},', text)


if __name__ == "__main__":
    unittest.main()
