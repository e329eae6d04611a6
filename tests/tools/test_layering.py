import unittest
from pathlib import Path

import layering
from tree import ARROWS, CMAKE, Tree


class Layering(unittest.TestCase):
    def findings(self, files: dict[str, str]) -> list[str]:
        found, _ = layering.check(Tree(self, files).root, ARROWS)
        return [str(finding) for finding in found]

    def assert_one(self, files: dict[str, str], *parts: str) -> None:
        found = self.findings(files)
        self.assertEqual(len(found), 1, found)
        for part in parts:
            self.assertIn(part, found[0])

    def test_a_clean_tree_has_no_findings(self):
        files = {
            "include/loom/result.hpp": "#include <string>\n",
            "src/base/a.hpp": '#include "loom/result.hpp"\n#include <vector>\n',
            "src/dtype/b.hpp": '#include "base/a.hpp"\n',
            "src/dtype/near.cpp": '#include "b.hpp"\n',
            "src/backend/cpu/k.cpp": '#include <immintrin.h>\n#include "base/a.hpp"\n',
        }
        self.assertEqual(self.findings(files), [])

    def test_an_arrow_upwards_is_refused_with_its_line(self):
        files = {"src/base/a.cpp": '// x\n#include "dtype/b.hpp"\n', "src/dtype/b.hpp": ""}
        self.assert_one(files, "src/base/a.cpp:2:", "base may not include", "no other room")

    def test_an_arrow_between_neighbours_is_refused(self):
        files = {"src/io/a.cpp": '#include "backend/cpu/k.hpp"\n', "src/backend/cpu/k.hpp": ""}
        self.assert_one(files, "src/io/a.cpp:1:", "(backend/cpu)", "base, dtype")

    def test_an_include_behind_a_comment_does_not_count(self):
        files = {"src/base/a.cpp": '// #include "dtype/b.hpp"\n/*\n#include "dtype/b.hpp"\n*/\n'}
        self.assertEqual(self.findings(files), [])

    def test_an_include_that_no_file_answers_is_named(self):
        self.assert_one({"src/base/a.cpp": '#include "base/none.hpp"\n'}, "is not in src/")

    def test_an_include_cannot_leave_the_tree(self):
        self.assert_one({"src/base/a.cpp": '#include "../../../x.hpp"\n'}, "is not in src/")

    def test_a_public_header_may_not_show_a_room(self):
        files = {"include/loom/a.hpp": '#include "base/b.hpp"\n', "src/base/b.hpp": ""}
        self.assert_one(files, "include/loom/a.hpp:1:", "public header")

    def test_a_folder_that_is_no_room_is_named(self):
        self.assert_one({"src/attic/a.cpp": ""}, "src/attic/a.cpp:1:", "not a room")

    def test_third_party_headers_stay_in_their_rooms(self):
        cases = [
            ("src/io/files/file.cpp", "nlohmann/json.hpp", "src/io/json/json.cpp"),
            ("src/io/a.cpp", "pcre2.h", "src/text/"),
            ("src/base/a.cpp", "CLI/CLI.hpp", "cli/"),
            ("src/base/a.cpp", "fmt/core.h", "cli/"),
            ("src/base/a.cpp", "httplib.h", "cli/"),
            ("src/dtype/a.cpp", "immintrin.h", "src/backend/cpu/"),
            ("src/dtype/a.cpp", "arm_neon.h", "src/backend/cpu/"),
            ("src/dtype/a.cpp", "sys/mman.h", "src/io/"),
            ("src/base/a.cpp", "iostream", "cli/"),
            ("src/base/a.cpp", "eigen3/Eigen/Core", "decision note"),
        ]
        for path, header, place in cases:
            with self.subTest(header=header):
                self.assert_one({path: f"#include <{header}>\n"}, f"<{header}>", place)

    def test_third_party_headers_are_allowed_where_they_live(self):
        files = {
            "src/io/json/json.cpp": "#include <nlohmann/json.hpp>\n",
            "cli/main.cpp": "#include <CLI/CLI.hpp>\n#include <fmt/core.h>\n#include <iostream>\n",
        }
        self.assertEqual(self.findings(files), [])

    def test_the_program_sees_the_public_interface_alone_outside_its_lab(self):
        rooms = {"src/base/a.hpp": "", "include/loom/b.hpp": ""}
        both = '#include "base/a.hpp"\n#include "loom/b.hpp"\n'
        self.assertEqual(self.findings({**rooms, "cli/lab/a.cpp": both}), [])
        self.assert_one({**rooms, "cli/a.cpp": both}, "cli/a.cpp:1:", "loom/ alone")

    def test_one_file_of_the_program_starts_the_server(self):
        rooms = {"src/serve/a.hpp": "", "src/base/a.hpp": ""}
        cases = [("cli/server/serve.cpp", "serve", 0), ("cli/language/run.cpp", "serve", 1),
                 ("cli/server/serve.cpp", "base", 1)]
        for path, room, count in cases:
            with self.subTest(path=path, room=room):
                found = self.findings({**rooms, path: f'#include "{room}/a.hpp"\n'})
                self.assertEqual(len([f for f in found if "loom/ alone" in f]), count)

    def test_the_server_sees_public_headers_and_few_rooms(self):
        headers = {"src/api/engine/impl.hpp": "", "src/base/a.hpp": ""}
        files = {"src/serve/a.cpp": '#include "api/engine/impl.hpp"\n#include "base/a.hpp"\n'}
        arrows = {**ARROWS, "api": ["base"], "serve": ["api"]}
        found, _ = layering.check(Tree(self, {**headers, **files}).root, arrows)
        told = [str(f) for f in found if "serve includes" in str(f)]
        self.assertEqual(len(told), 1, told)
        self.assertIn("src/serve/a.cpp:1:", told[0])
        for path, header in layering.SERVE_EXCEPTIONS.items():
            root = Path(layering.__file__).parent.parent
            self.assertIn(header.removeprefix("src/"), (root / path).read_text())

    def test_quotes_do_not_hide_a_third_party_header(self):
        text = '#include "nlohmann/json.hpp"\n'
        self.assert_one({"src/base/a.cpp": text}, "src/io/json/json.cpp")

    def test_a_case_on_a_dtype_is_allowed_in_dtype_only(self):
        code = "int f(DType d) {\n  switch (d) {\n    case DType::f32: return 1;\n  }\n}\n"
        self.assertEqual(self.findings({"src/dtype/a.cpp": code}), [])
        self.assert_one({"src/io/a.cpp": code}, "src/io/a.cpp:3:", "dtype")
        self.assert_one({"cli/a.cpp": code.replace("DType::", "loom::DType::")}, "cli/a.cpp:3:")

    def test_an_enum_that_only_ends_in_dtype_is_another_enum(self):
        self.assertEqual(self.findings({"src/io/a.cpp": "case SafeDType::f32: return 1;\n"}), [])

    def test_a_case_on_a_layer_kind_is_refused_outside_layers(self):
        self.assert_one({"src/io/a.cpp": "case LayerKind::dense:\n"}, "layer kind")

    def test_a_comparison_with_a_dtype_is_refused_outside_dtype(self):
        for code in (
            "bool f(DType d) { return d == DType::f16; }\n",
            "bool f(DType d) { return core::DType::i4 != d; }\n",
            "using T = loom::core::DType; bool f(T d) { return d ==\n T::nf4; }\n",
        ):
            with self.subTest(code=code):
                self.assertEqual(self.findings({"src/dtype/a.cpp": code}), [])
                self.assert_one({"src/io/a.cpp": code}, "src/io/a.cpp:1:", "comparison", "dtype")
                self.assert_one({"cli/a.cpp": code}, "cli/a.cpp:1:", "comparison")

    def test_a_comparison_with_a_type_of_activations_or_ids_passes(self):
        code = """
bool f(DType d) { return d == DType::f32 || DType::f64 == d || d != loom::DType::float32; }
bool ids(DType d) { return d == DType::i32; }
"""
        self.assertEqual(self.findings({"src/io/a.cpp": code}), [])
        self.assert_one({"src/io/a.cpp": code + "bool g(DType d) { return d == DType::f32x; }"})

    def test_a_comparison_with_a_layer_kind_is_refused_outside_layers(self):
        for code in (
            "bool f(LayerKind k) { return k == LayerKind::dense; }\n",
            "using K = LayerKind; bool f(K k) { return K::gru != k; }\n",
        ):
            with self.subTest(code=code):
                problem = "comparison with a layer kind"
                self.assert_one({"src/io/a.cpp": code}, "src/io/a.cpp:1:", problem)
                at_home = self.findings({"src/layers/a.cpp": code})
                self.assertEqual([finding for finding in at_home if problem in finding], [])

    def test_what_only_looks_like_a_comparison_with_a_kind_passes(self):
        code = """
using K = Kind;
LayerKind k = LayerKind::dense;
bool f(Kind a) { return a == K::small || x <= LayerKind::gru; }
"""
        self.assertEqual(self.findings({"src/io/a.cpp": code}), [])

    def test_every_place_that_may_compare_is_there_and_says_why(self):
        root = Path(layering.__file__).resolve().parent.parent
        for place, why in {**layering.COMPARES_DTYPES, **layering.COMPARES_KINDS}.items():
            with self.subTest(place=place):
                self.assertTrue((root / place).exists())
                self.assertTrue(why)

    def test_the_library_never_prints_ends_throws_or_reads_the_environment(self):
        for code in (
            'printf("x");',
            'std::fprintf(stderr, "x");',
            "std::cout << 1;",
            "abort();",
            "std::abort();",
            "::exit(1);",
            "std::terminate();",
            "throw 1;",
            'std::getenv("HOME");',
        ):
            with self.subTest(code=code):
                self.assert_one({"src/base/a.cpp": f"void f() {{\n  {code}\n}}\n"}, "a.cpp:2:")

    def test_words_that_only_look_banned_pass(self):
        code = """
// throw, abort() and printf() in a comment
const char* text = "throw abort() getenv(";
void f() { std::snprintf(b, 4, "x"); loop.exit(); queue->abort(); my_exit(); nothrow; }
"""
        self.assertEqual(self.findings({"src/base/a.cpp": code}), [])

    def test_the_program_may_print(self):
        self.assertEqual(self.findings({"cli/a.cpp": 'void f() { printf("x"); exit(1); }\n'}), [])


class Arrows(unittest.TestCase):
    def cmake(self, text: str) -> list[str]:
        root = Tree(self, {"CMakeLists.txt": text}).root
        return [str(finding) for finding in layering.check_cmake(root, ARROWS)]

    def test_equal_arrows_have_no_findings(self):
        self.assertEqual(self.cmake(CMAKE), [])

    def test_arrows_are_compared_with_all_they_reach(self):
        self.assertEqual(
            self.cmake(CMAKE.replace("cpu DEPENDS dtype", "cpu DEPENDS base dtype")), []
        )

    def test_an_arrow_too_many_is_named(self):
        found = self.cmake(CMAKE.replace("cpu DEPENDS dtype", "cpu DEPENDS io"))
        self.assertEqual(len(found), 1)
        self.assertIn("CMakeLists.txt:6: room backend/cpu: io too many, nothing missing", found[0])

    def test_a_missing_and_an_unknown_room_are_named(self):
        found = self.cmake(CMAKE.replace("backend/cpu", "backend/gpu"))
        self.assertIn("backend/cpu is missing", found[0])
        self.assertIn("backend/gpu is unknown", found[1])

    def test_a_cycle_is_named(self):
        root = Tree(
            self, {"CMakeLists.txt": "loom_room(a DEPENDS b)\nloom_room(b DEPENDS a)\n"}
        ).root
        found = layering.check_cmake(root, {"a": ["b"], "b": ["a"]})
        self.assertIn("reach each other", str(found[0]))

    def test_the_table_of_this_tree_has_no_cycle_and_a_lowest_room(self):
        reach = layering.reachable(layering.ARROWS)
        self.assertEqual(reach["base"], {"base"})
        self.assertNotIn("backend/cpu", reach["layers"] | reach["grid"] | reach["llm"])


if __name__ == "__main__":
    unittest.main()
