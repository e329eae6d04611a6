"""The table of surfaces: what is read of each, what is missing, and that the page is true."""

import tomllib
import unittest
from pathlib import Path

import surfaces
import surfaces_names
from surfaces import Member, Surface, check
from tree import Tree

ROOT = Path(__file__).resolve().parents[2]

HEADER = """\
namespace loom {
// LOOM_API int not_this();
struct FitOptions {
  int64_t epochs = 1;
  std::function<bool(int64_t done, int64_t total)> on_step{};
};
class LOOM_API BigMesh {
 public:
  static Result<BigMesh> create(const Network& network,
                                const MeshOptions& options = {});
  Status tick(int64_t count = 1);
  int64_t ticks() const;
  explicit BigMesh(int x);
  operator Layer() const;
 private:
  void hidden();
};
LOOM_API Result<Clusters> kmeans(const Tensor& points,
                                 const KMeansOptions& options = {});
}  // namespace loom
"""
API = """\
[[function]]
name = "loom_big_mesh_tick"
[[struct]]
name = "loom_big_mesh_info"
fields = [["int64_t", "ticks", ""]]
"""
PYTHON = """\
class Base:
    def tick(self): ...
class BigMesh(Base):
    def __init__(self, network): ...
    def fit(self, *, on_step=None): ...
def kmeans(points): ...
"""
TYPESCRIPT = """\
export class BigMesh extends Closable {
  readonly info: MeshInfo;
  async tick(count: number): Promise<void> {
  }
}
"""
DESCRIPTION = """\
[classes.python]
FitOptions = "BigMesh.fit"
[classes.c]
[[capability]]
name = "mesh"
headers = ["mesh.hpp"]
program = ["mesh"]
[cell]
kmeans = { c = "no: by hand" }
"BigMesh::*" = { typescript = "no: not in pages" }
"""


def tree(test, **changed):
    files = {
        "include/loom/mesh.hpp": HEADER,
        "api/loom_api.toml": API,
        "api/surfaces.toml": DESCRIPTION,
        "bindings/python/loom/mesh.py": PYTHON,
        "bindings/typescript/src/mesh.ts": TYPESCRIPT,
        "cli/verb_list.cpp": "add_mesh(app), core::cli::add_bench_gpu(app)",
        **changed,
    }
    return Tree(test, files).root


class Reading(unittest.TestCase):
    def test_members_are_functions_methods_and_callbacks(self):
        found = [name for _, name in surfaces_names.members(tree(self))]
        self.assertEqual(found, [
            "FitOptions::on_step", "BigMesh::create", "BigMesh::tick", "BigMesh::ticks", "kmeans",
        ])  # fmt: skip

    def test_each_cell_has_a_name_a_reason_or_is_a_gap(self):
        rows, _ = surfaces.build(tree(self))
        self.assertEqual({row.member.name: (*row.cells.values(),) for row in rows}, {
            "FitOptions::on_step": ("", "BigMesh.fit(on_step)", ""),
            "BigMesh::create": ("", "BigMesh", "BigMesh"),
            "BigMesh::tick": ("loom_big_mesh_tick", "BigMesh.tick", "BigMesh.tick"),
            "BigMesh::ticks": ("loom_big_mesh_info.ticks", "", "BigMesh.info"),
            "kmeans": ("no: by hand", "kmeans", ""),
        })  # fmt: skip
        self.assertEqual(surfaces.counts(rows), {"c": 2, "python": 1, "typescript": 2})

    def test_what_the_description_says_wrong_is_an_error(self):
        for old, new, words in (
            ('["mesh.hpp"]', '["other.hpp"]', "mesh.hpp is in no capability"),
            ('["mesh"]', '["grid"]', "there is no `loom grid`"),
            ('program = ["mesh"]', "", "neither a verb nor why.program"),
            ('"no: by hand"', '"loom_means"', "C has no loom_means"),
            ("kmeans =", "means =", "there is no member means"),
        ):
            with self.subTest(words), self.assertRaisesRegex(surfaces.Wrong, words):
                surfaces.build(tree(self, **{"api/surfaces.toml": DESCRIPTION.replace(old, new)}))

    def test_a_name_of_c_is_that_of_a_function_or_a_field(self):
        surface = Surface("c", {"loom_engine_get_info", "loom_engine_info.isa"}, {})
        for name, wanted in (("info", "loom_engine_get_info"), ("isa", "loom_engine_info.isa")):
            self.assertEqual(surface.find(Member("engine.hpp", f"Engine::{name}"), ""), wanted)


class Record(unittest.TestCase):
    def test_a_count_that_rose_or_fell_is_a_finding(self):
        for recorded, words in (({"c": 3}, ""), ({"c": 2}, "C has 3 gaps"), ({}, "C has 3 gaps"),
                                ({"c": 4}, "fell from 4 to 3")):  # fmt: skip
            findings = check({"c": 3}, recorded)
            self.assertEqual(bool(findings), bool(words), recorded)
            self.assertIn(words, " ".join(findings))

    def test_the_page_and_the_counts_are_those_of_the_tree(self):
        rows, description = surfaces.build(ROOT)
        record = tomllib.loads((ROOT / surfaces.RECORD).read_text(encoding="utf-8"))
        self.assertEqual(check(surfaces.counts(rows), record), [])
        page = (ROOT / surfaces.PAGE).read_text(encoding="utf-8")
        self.assertEqual(page, surfaces.page(rows, description), "run tools/surfaces.py")


if __name__ == "__main__":
    unittest.main()
