import unittest

import budgets
from cpp_source import without_comments, without_preprocessor
from tree import Tree

# Each case: source, then the (name, first line, lines) that must be found.
CASES = {
    "a free function": ("int f(int a) {\n  return a;\n}\n", [("f", 1, 3)]),
    "a declaration is not a function": ("int f(int a);\nextern int x;\n", []),
    "a namespace and a class": (
        "namespace loom {\nclass A {\n public:\n  A() : a_(1), b_{2} {}\n  int f() const {\n"
        "    return a_;\n  }\n\n private:\n  int a_, b_{0};\n};\n}  // namespace loom\n",
        [("A", 4, 1), ("f", 5, 3)],
    ),
    "a member defined outside": (
        "Result<int> A<T>::g(int a,\n                    int b) && {\n  return 1;\n}\n",
        [("A<T>::g", 1, 4)],
    ),
    "a template with a requires-clause": (
        "template <class T>\n  requires(std::is_arithmetic_v<T>)\nvoid f(T v) {\n  g(v);\n}\n",
        [("f", 1, 5)],
    ),
    "operators": (
        "bool operator==(A a, A b) { return true; }\n"
        "A& operator=(A&& o) noexcept {\n  return o;\n}\n"
        "int operator()(int x) const {\n  return x;\n}\n",
        [("operator==", 1, 1), ("operator=", 2, 3), ("operator()", 5, 3)],
    ),
    "a default argument in braces": (
        "Error e(std::string m, std::string w = {},\n        int o = -1) {\n  return E{m, w};\n}\n",
        [("e", 1, 4)],
    ),
    "a table is not a function": (
        "constexpr Row kRows[] = {\n    {1, sizeof(int), f(2)},\n    {2, 3, 4},\n};\n"
        "int g() { return 1; }\n",
        [("g", 5, 1)],
    ),
    "a call in an initializer is not a function": (
        "const A a = make(1, {2, 3});\nB b{f(1)};\n",
        [],
    ),
    "a lambda in a table": (
        "const Row kRow = {1, [](int x) {\n  return x;\n}};\nint g() { return 1; }\n",
        [("lambda", 1, 3), ("g", 4, 1)],
    ),
    "a lambda in a function belongs to it": (
        "void f() {\n  auto g = [&](int i) {\n    h(i);\n  };\n  for (int i = 0; i < 3; ++i) {\n"
        "    g(i);\n  }\n}\n",
        [("f", 1, 8)],
    ),
    "a for loop in the head of nothing": (
        "int x;\nvoid f() { for (;;) { g(); } }\n",
        [("f", 2, 1)],
    ),
    "braces in strings, characters and comments": (
        'void f() {\n  s = "}";  // }\n  c = \'}\'; /* } */\n  r = R"x(})")x";\n  n = 1\'000;\n}\n',
        [("f", 1, 6)],
    ),
    "both branches of an #if": (
        "#if A\nvoid f() {\n}\n#else\nvoid g() {\n  x();\n}\n#endif\n",
        [("f", 2, 2), ("g", 5, 3)],
    ),
    "branches that share a body": (
        "#if A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n  x();\n}\nvoid g() {\n}\n",
        [("f", 2, 6), ("g", 8, 2)],
    ),
    "a macro body is not a function": (
        "#define F(x) \\\n  void x() { \\\n  }\nint g() {\n}\n",
        [("g", 4, 2)],
    ),
    "a test": ("TEST(Room, DoesIt) {\n  EXPECT_EQ(1, 1);\n}\n", [("TEST", 1, 3)]),
    "a struct with initialized members": (
        "struct alignas(64) A {\n  int a = 1;\n  std::array<int, 2> b = {1, 2};\n"
        "  A f() { return *this; }\n};\n",
        [("f", 4, 1)],
    ),
    "an enum and extern C": (
        'enum class E : uint8_t { a, b };\nextern "C" {\nint f(void) {\n  return 0;\n}\n}\n',
        [("f", 3, 3)],
    ),
}


class Functions(unittest.TestCase):
    def test_functions_are_found_with_their_lines(self):
        for name, (source, wanted) in CASES.items():
            with self.subTest(name):
                found = budgets.cpp_functions(source, "a.cpp")
                self.assertEqual([(f.name, f.line, f.lines) for f in found], wanted)

    def test_python_functions_are_found(self):
        found = budgets.python_functions(
            "def f():\n    return 1\n\n\nclass A:\n    def g(self): ...\n", "a"
        )
        self.assertEqual([(f.name, f.lines) for f in found], [("f", 2), ("g", 1)])

    def test_reduced_text_keeps_every_line(self):
        for name, (source, _) in CASES.items():
            with self.subTest(name):
                reduced = without_preprocessor(without_comments(source))
                self.assertEqual(reduced.count("\n"), source.count("\n"))


class Limits(unittest.TestCase):
    def findings(self, files: dict[str, str]) -> list[str]:
        return budgets.findings(budgets.measure(Tree(self, files).root))

    def test_a_small_tree_passes(self):
        self.assertEqual(self.findings({"src/base/a.cpp": "int f() {\n  return 1;\n}\n"}), [])

    def test_a_long_file_is_named(self):
        found = self.findings(
            {"src/base/a.cpp": "int x;\n" * 601, "src/base/b.cpp": "", "cli/c.cpp": ""}
        )
        self.assertEqual(found, ["src/base/a.cpp:1: 601 lines, budget 600; split the file"])

    def test_a_long_function_is_named_in_tests_too(self):
        body = "int f() {\n" + "  x();\n" * 99 + "}\n"
        found = self.findings({"tests/base/a_test.cpp": body})
        self.assertEqual(
            found, ["tests/base/a_test.cpp:1: f has 101 lines, budget 100; split the function"]
        )

    def test_many_functions_over_forty_lines_fail_at_p90(self):
        body = "int f() {\n" + "  x();\n" * 39 + "}\n"
        self.assertIn("functions at p90 have 41 lines", self.findings({"src/base/a.cpp": body})[0])

    def test_long_files_everywhere_fail_at_the_median(self):
        found = self.findings({"src/base/a.cpp": "int x;\n" * 181})
        self.assertIn("median file has 181 lines", found[0])

    def test_a_wide_line_is_named_and_the_rest_counted(self):
        found = self.findings({"src/base/a.cpp": "//" + "x" * 99 + "\n" + ("y" * 120 + "\n") * 4})
        self.assertIn("src/base/a.cpp:1: 101 columns", found[0])
        self.assertIn("src/base/a.cpp:4: and 2 more", found[-1])

    def test_columns_are_characters_and_links_may_be_wide(self):
        text = "// " + "é" * 97 + "\n// https://example.org/" + "x" * 100 + "\n"
        self.assertEqual(self.findings({"src/base/a.cpp": text}), [])

    def test_generated_files_and_tables_are_exempt(self):
        long = "x" * 200 + "\n"
        files = {
            "src/base/a.cpp": "// generated by tools/x.py\n" + long * 700,
            "src/base/t.def": long * 700,
        }
        self.assertEqual(self.findings(files), [])

    def test_percentiles_are_nearest_rank(self):
        self.assertEqual(budgets.percentile(list(range(1, 11)), 0.9), 9)
        self.assertEqual(budgets.percentile([5, 1, 3], 0.5), 3)
        self.assertEqual(budgets.percentile([], 0.5), 0)


if __name__ == "__main__":
    unittest.main()
