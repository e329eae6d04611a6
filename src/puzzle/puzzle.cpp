#include "puzzle/puzzle.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxPairs = 64, kMaxPuzzleText = size_t{4} << 20;

class PuzzleReader {
 public:
  explicit PuzzleReader(std::string_view where) : where_(where) {}

  Result<std::vector<PuzzlePair>> pairs(const JsonValue& all, const char* part,
                                        bool answers) const {
    const JsonValue* list = all.find(part);
    if (list == nullptr || !list->is_array() || list->elements().empty())
      return wrong(cat("a puzzle needs a list \"", part, "\" of pairs"), all);
    if (list->elements().size() > kMaxPairs)
      return wrong(cat("\"", part, "\" has ", list->elements().size(), " pairs; at most ",
                       kMaxPairs, " are read"),
                   *list);
    std::vector<PuzzlePair> out;
    for (const JsonValue& one : list->elements()) {
      const std::string at = cat(part, "[", out.size(), "]");
      PuzzlePair pair;
      LOOM_ASSIGN(pair.in, grid(one, "input", at));
      if (answers || one.find("output") != nullptr) {
        LOOM_ASSIGN(pair.out, grid(one, "output", at));
      }
      out.push_back(std::move(pair));
    }
    return out;
  }

 private:
  Error wrong(std::string message, const JsonValue& at) const {
    return bad_file(std::move(message), std::string(where_), at.offset());
  }

  Result<PuzzleGrid> grid(const JsonValue& pair, const char* key, const std::string& at) const {
    const JsonValue* rows = pair.find(key);
    const std::string name = cat(at, ".", key);
    if (rows == nullptr || !rows->is_array()) return wrong(cat(name, " must be a grid"), pair);
    const size_t height = rows->elements().size();
    if (height < 1 || height > kMaxPuzzleSide)
      return wrong(cat(name, " has ", height, " rows; 1 to ", kMaxPuzzleSide, " are read"), *rows);
    const size_t width = rows->elements()[0].elements().size();
    if (width < 1 || width > kMaxPuzzleSide)
      return wrong(cat(name, " has ", width, " columns; 1 to ", kMaxPuzzleSide, " are read"),
                   *rows);
    PuzzleGrid out(static_cast<int>(height), static_cast<int>(width));
    for (size_t r = 0; r < height; ++r) {
      const JsonValue& row = rows->elements()[r];
      if (row.elements().size() != width)
        return wrong(
            cat(name, ": row ", r, " has ", row.elements().size(), " cells, the first ", width),
            row);
      for (size_t c = 0; c < width; ++c) {
        LOOM_ASSIGN(const int64_t colour, row.elements()[c].as_int(cat(where_, ": ", name)));
        if (colour < 0 || colour >= kPuzzleColours)
          return wrong(cat(name, ": a colour is ", colour, ", must be 0 to 9"), row.elements()[c]);
        out.cells[r * width + c] = static_cast<uint8_t>(colour);
      }
    }
    return out;
  }

  std::string_view where_;
};

JsonValue grid_json(const PuzzleGrid& grid) {
  JsonValue rows = JsonValue::array();
  for (int r = 0; r < grid.rows; ++r) {
    JsonValue row = JsonValue::array();
    for (int c = 0; c < grid.cols; ++c) row.push(JsonValue::integer(grid.at(r, c)));
    rows.push(std::move(row));
  }
  return rows;
}

JsonValue pairs_json(const std::vector<PuzzlePair>& pairs) {
  JsonValue out = JsonValue::array();
  for (const PuzzlePair& p : pairs) {
    JsonValue one = JsonValue::object();
    one.add("input", grid_json(p.in));
    if (!p.out.empty()) one.add("output", grid_json(p.out));
    out.push(std::move(one));
  }
  return out;
}

}  // namespace

Result<Puzzle> parse_puzzle(std::string_view text, std::string_view where) {
  JsonLimits limits;
  limits.max_bytes = kMaxPuzzleText;
  limits.max_depth = 16;
  LOOM_ASSIGN(const JsonValue all, parse_json(text, where, limits));
  const PuzzleReader reader(where);
  Puzzle out;
  out.name = where.substr(where.find_last_of('/') + 1);
  LOOM_ASSIGN(out.train, reader.pairs(all, "train", true));
  LOOM_ASSIGN(out.test, reader.pairs(all, "test", false));
  return out;
}

Result<Puzzle> load_puzzle(const std::string& path) {
  LOOM_ASSIGN(const std::string text, read_file(path, kMaxPuzzleText));
  return parse_puzzle(text, path);
}

std::string puzzle_json(const Puzzle& puzzle) {
  JsonValue all = JsonValue::object();
  all.add("train", pairs_json(puzzle.train));
  all.add("test", pairs_json(puzzle.test));
  return dump_json(all);
}

double likeness(const PuzzleGrid& a, const PuzzleGrid& b) {
  if (a.empty() || b.empty()) return 0;
  if (a.rows != b.rows || a.cols != b.cols) {
    // A similar size is worth a little, and less than any grid of the right size whose background
    // alone is right.
    const auto side = [](int x, int y) {
      return static_cast<double>(std::min(x, y)) / std::max(x, y);
    };
    return 0.19 * side(a.rows, b.rows) * side(a.cols, b.cols);
  }
  size_t equal = 0;
  for (size_t i = 0; i < a.cells.size(); ++i) equal += a.cells[i] == b.cells[i] ? 1 : 0;
  return 0.2 + 0.8 * static_cast<double>(equal) / static_cast<double>(a.cells.size());
}

}  // namespace loom::core
