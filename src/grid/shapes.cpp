// Network::shapes(): the shapes of every cell's input and output. A feedback link brings the output
// shape of its source, which may depend on the reader: then the shape is a guess. Guesses are tried
// in a fixed order until each equals the shape that its source gives for it. After a failure, the
// search returns to the last guess that the failure depends on (Prosser, 1993: conflict-directed
// backjumping).
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "grid/network.hpp"
#include "layers/core/graph.hpp"

namespace loom::core {
namespace {

// The limit of cell evaluations: far more than networks with fixed widths need.
constexpr int64_t kMaxSteps = 200'000;
// The limit in the search for a second answer; beyond it the first answer is accepted.
constexpr int64_t kMaxOtherSteps = 20'000;
constexpr int64_t kMaxExtent = 1 << 20;
constexpr int64_t kAnyWidth = 64;

// Several outputs are those of a network: after a cell that is not its last, one continues.
Result<std::vector<Shape>> outputs_of(const LayerConfig& layer, const Shape& in, const Shape& skip,
                                      bool last) {
  const std::array<Shape, 2> shapes = {in, skip};
  if (last) return infer_all(layer, inputs_after(layer, shapes));
  LOOM_ASSIGN(const Shape out, infer_after(layer, in, skip));
  return std::vector<Shape>{out};
}

// The cells on whose guesses a result depends, by index.
using Causes = std::set<size_t>;

// Extents in the fields of a layer and its children, each once.
void add_extents(const LayerConfig& layer, std::vector<int64_t>& extents) {
  for (size_t i = 0; i < layer.values.size(); ++i) {
    if (layer.def->fields[i].type != FieldType::integer) continue;
    const int64_t extent = layer.integer(static_cast<int>(i));
    if (extent < 1 || extent > kMaxExtent) continue;
    if (std::find(extents.begin(), extents.end(), extent) == extents.end())
      extents.push_back(extent);
  }
  for (const LayerConfig& child : layer.children) add_extents(child, extents);
}

// Adds a shape that is not in the list yet.
bool add_new(const Shape& shape, std::vector<Shape>& all) {
  if (std::find(all.begin(), all.end(), shape) != all.end()) return false;
  all.push_back(shape);
  return true;
}

// Whether the shapes are equal except for the last axis.
bool differ_in_width(Shape a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  if (a.rank() > 0) a[a.rank() - 1] = b.last();
  return a == b;
}

// The only axis besides the batch in which they differ; -1 if there are none or several.
int other_axis(const Shape& a, const Shape& b) {
  int found = -1;
  for (int axis = 0; axis < a.rank() && a.rank() == b.rank(); ++axis) {
    if (a[axis] == b[axis]) continue;
    if (axis == 0 || found >= 0) return -1;
    found = axis;
  }
  return found;
}

// A guess of a feedback link, and whether others were equally good: it was found by trying widths.
struct Guess {
  Shape shape;
  bool free = false;
};

class ShapeSearch {
 public:
  // known: the input for which the cells have shapes; rank 0 means that they have none yet.
  ShapeSearch(const std::vector<GridNode>& cells, const Shape& input, const Shape& known)
      : cells_(cells),
        input_(input),
        known_(known),
        causes_(cells.size()),
        readers_(cells.size()),
        chosen_(cells.size()) {
    for (size_t i = 0; i < cells.size(); ++i) {
      if (guesses_shape(i)) readers_[source(i)].push_back(i);
    }
  }

  Result<std::vector<CellShapes>> run() {
    Causes conflict;
    all_.reserve(cells_.size());
    if (!solve(0, conflict)) return *error_;
    return all_;
  }
  // Call after run(): looks for another width that fits the feedback to some cell. Errors: invalid,
  // naming the cells and both shapes.
  Status check_only_one() const;

 private:
  // The importance of an Error: the first of the highest rank is reported.
  enum Rank : int { kReaderRefuses, kCellRefuses, kOtherShape };

  const GridNode& cell(size_t i) const { return cells_[i]; }
  size_t source(size_t i) const { return static_cast<size_t>(cells_[i].link); }
  bool guesses_shape(size_t i) const { return cells_[i].feedback && source(i) >= i; }

  void fail(Rank rank, Error error) {
    if (error_.has_value() && rank <= rank_) return;
    rank_ = rank;
    error_ = std::move(error);
  }
  void forget(size_t from) {
    all_.resize(from);
    for (size_t i = from; i < causes_.size(); ++i) causes_[i].clear();
  }

  bool solve(size_t i, Causes& conflict);
  bool try_shape(size_t i, const Shape* guess, Causes& conflict);
  bool meets_guesses(size_t i, Causes& conflict);
  bool guess(size_t i, Causes& conflict);
  std::vector<Guess> first_guesses(size_t i) const;
  std::vector<Shape> candidates(size_t i) const;
  bool unlike_known(size_t i, const Shape& out) const;

  const std::vector<GridNode>& cells_;
  const Shape& input_;
  const Shape& known_;
  std::vector<CellShapes> all_;                    // of the cells so far
  std::vector<Causes> causes_;                     // of their outputs
  std::vector<std::vector<size_t>> readers_;       // of each cell: those that guess its output
  std::vector<std::pair<size_t, Shape>> brought_;  // outputs of sources in place of a guess
  std::vector<std::optional<Shape>> chosen_;       // free guesses that are valid, by cell
  // In a search for another answer: the guess of this cell is `not_this_` except for that axis.
  std::optional<size_t> other_;
  Shape not_this_;
  int other_axis_ = -1;
  int64_t steps_ = 0, max_steps_ = kMaxSteps;
  std::optional<Error> error_;
  Rank rank_ = kReaderRefuses;
};

// Solves cells from `i` on. False: `conflict` has the guesses that the failure depends on.
bool ShapeSearch::solve(size_t i, Causes& conflict) {
  for (; i < cells_.size(); ++i) {
    if (guesses_shape(i)) return guess(i, conflict);
    if (!try_shape(i, nullptr, conflict)) return false;
  }
  return true;
}

// Adds cell `i`, whose link brings `guess`, if it has one.
bool ShapeSearch::try_shape(size_t i, const Shape* guess, Causes& conflict) {
  ++steps_;
  const GridNode& node = cell(i);
  Shape in = i == 0 ? input_ : all_.back().out;
  Shape skip = i == 0 ? input_ : all_.back().in;
  std::string from = i == 0 ? "the input" : cat("cell ", cell(i - 1).at.str());
  Causes causes = i == 0 ? Causes{} : causes_[i - 1];
  if (node.link >= 0) {
    if (!node.skip) causes.clear();
    if (guess != nullptr) causes.insert(i);
    if (guess == nullptr) causes.insert(causes_[source(i)].begin(), causes_[source(i)].end());
    (node.skip ? skip : in) = guess != nullptr ? *guess : all_[source(i)].out;
    if (!node.skip)
      from = cat(node.feedback ? "the feedback from " : "", "cell ", cell(source(i)).at.str());
  }
  if (takes_ids(node.node.config) && (i > 0 || (node.link >= 0 && !node.skip))) {
    fail(kOtherShape, invalid(cat("cell ", node.at.str(), " takes integers (ids), which only ",
                                  "the input holds; ", from, " gives others")));
    conflict.clear();
    return false;
  }
  Result<std::vector<Shape>> out = outputs_of(node.node.config, in, skip, i + 1 == cells_.size());
  if (!out.ok()) {
    Error error = out.error();
    error.message = cat("cell ", node.at.str(), " does not fit ", from, ": ", error.message);
    fail(guess != nullptr ? kReaderRefuses : kCellRefuses, std::move(error));
    conflict = std::move(causes);
    return false;
  }
  if (!causes.empty() && unlike_known(i, (*out)[0])) {
    fail(kOtherShape, invalid(cat("an input ", input_.str(), " makes cell ", node.at.str(),
                                  " give ", (*out)[0].str(), ", where the network gives ",
                                  node.out.str(), "; take inputs of its own shape")));
    conflict = std::move(causes);
    return false;
  }
  all_.push_back({in, (*out)[0], {out->begin() + 1, out->end()}});
  causes_[i] = std::move(causes);
  return meets_guesses(i, conflict);
}

// Whether cell `i` gives the shape that the readers of its feedback guessed.
bool ShapeSearch::meets_guesses(size_t i, Causes& conflict) {
  const Shape& out = all_[i].out;
  for (const size_t reader : readers_[i]) {
    const GridNode& node = cell(reader);
    // A second input has the shape of the first.
    if (all_[reader].in == out) continue;
    fail(kOtherShape,
         invalid(cat("cell ", node.at.str(), " takes ", all_[reader].in.str(),
                     ", but the feedback from ", cell(i).at.str(), " brings ", out.str())));
    brought_.emplace_back(reader, out);
    conflict = causes_[i];
    conflict.insert(reader);
    return false;
  }
  return true;
}

// Whether cell `i` would give another kind of value than for the network's own input. A pass of
// fewer steps counts as the same network.
bool ShapeSearch::unlike_known(size_t i, const Shape& out) const {
  if (known_.rank() == 0 || known_.rank() != input_.rank()) return false;
  const Shape& own = cell(i).out;
  if (own.rank() != out.rank()) return true;
  const bool steps = known_.rank() == 3 && known_.last() == input_.last();
  return steps && out.rank() > 0 && own.last() != out.last();
}

// The shape of cell `i` in the network, for this input; then the shape without the link.
std::vector<Guess> ShapeSearch::first_guesses(size_t i) const {
  std::vector<Guess> all;
  if (other_ == i) return all;
  if (known_.rank() > 0 && known_.rank() == input_.rank()) {
    Shape mine = cell(i).in;
    for (int axis = 0; axis < mine.rank() && axis < known_.rank(); ++axis) {
      if (mine[axis] == known_[axis]) mine[axis] = input_[axis];
    }
    all.push_back({mine});
  }
  all.push_back({i == 0 ? input_ : all_.back().out});
  return all;
}

// Solves cell `i` and later ones for each guess in turn: first the shape without the link, then the
// output of the source for a guess, then all others.
bool ShapeSearch::guess(size_t i, Causes& conflict) {
  Causes others;
  std::vector<Guess> left = first_guesses(i);
  std::vector<Shape> tried;
  bool extended = cell(i).skip;  // a second input has the shape of the first
  for (size_t next = 0; steps_ < max_steps_ + std::ssize(cells_); ++next) {
    if (next == left.size() && !extended) {
      for (const Shape& shape : candidates(i)) left.push_back({shape, true});
      extended = true;
    }
    if (next == left.size()) break;
    const auto [mine, free] = left[next];
    if (other_ == i && other_axis(mine, not_this_) != other_axis_) continue;
    if (!add_new(mine, tried)) continue;
    Causes why;
    const size_t seen = brought_.size();
    if (try_shape(i, &mine, why) && solve(i + 1, why)) {
      if (free) chosen_[i] = mine;
      return true;
    }
    forget(i);
    if (why.count(i) == 0) {  // it fails with any guess here
      conflict = std::move(why);
      return false;
    }
    why.erase(i);
    others.merge(why);
    for (size_t b = brought_.size(); b > seen && !cell(i).skip; --b) {
      if (brought_[b - 1].first == i)
        left.insert(left.begin() + static_cast<ptrdiff_t>(next) + 1, Guess{brought_[b - 1].second});
    }
  }
  conflict = std::move(others);
  if (cell(i).skip && i > 0) conflict.insert(causes_[i - 1].begin(), causes_[i - 1].end());
  return false;
}

// Guesses of cell `i`, most likely first: the output of its source for nearby shapes, then those
// shapes. Nearest is the shape of the cell before with another width, then with other channels.
std::vector<Shape> ShapeSearch::candidates(size_t i) const {
  const LayerConfig& giver = cell(source(i)).node.config;
  std::vector<int64_t> extents;
  add_extents(cell(i).node.config, extents);
  add_extents(giver, extents);
  for (const GridNode& node : cells_) add_extents(node.node.config, extents);
  std::vector<Shape> near, bases = {i == 0 ? input_ : all_.back().out, input_};
  for (const CellShapes& known : all_) add_new(known.out, bases);
  for (const Shape& base : bases) {
    add_new(base, near);
    for (const int axis : {base.rank() - 1, 1}) {
      for (const int64_t extent : extents) {
        if (axis < 1 || axis >= base.rank()) break;
        Shape shape = base;
        shape[axis] = extent;
        add_new(shape, near);
      }
    }
  }
  for (const int64_t extent : extents) add_new(Shape{input_[0], extent}, near);
  // Widths that no field names, such as two concatenated values.
  for (int64_t extent = 1; extent <= kAnyWidth && bases[0].rank() > 1; ++extent) {
    Shape shape = bases[0];
    shape[shape.rank() - 1] = extent;
    add_new(shape, near);
  }
  std::vector<Shape> all;
  for (const Shape& shape : near) {
    if (takes_ids(giver)) break;
    const Result<Shape> out = infer_after(giver, shape, shape);
    if (out.ok()) add_new(*out, all);
  }
  for (const Shape& shape : near) add_new(shape, all);
  // A source may also take all values of a sample at once; such shapes come last.
  std::stable_partition(all.begin(), all.end(),
                        [&](const Shape& shape) { return differ_in_width(shape, bases[0]); });
  return all;
}

#ifndef LOOM_MINIMAL  // an inference-only build reads networks that were checked before
Status ShapeSearch::check_only_one() const {
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (!chosen_[i]) continue;
    const int axis = other_axis(*chosen_[i], i == 0 ? input_ : all_[i - 1].out);
    if (axis < 0) continue;
    ShapeSearch search(cells_, input_, known_);
    search.other_axis_ = axis;
    search.other_ = i;
    search.not_this_ = *chosen_[i];
    search.max_steps_ = kMaxOtherSteps;
    const Result<std::vector<CellShapes>> other = search.run();
    if (!other.ok()) continue;
    return invalid(cat("the feedback from cell ", cell(source(i)).at.str(), " to cell ",
                       cell(i).at.str(), " fits ", chosen_[i]->str(), " and ", (*other)[i].in.str(),
                       "; put a layer of one width, as a Dense, between the two"));
  }
  return {};
}

#endif

}  // namespace

Result<std::vector<CellShapes>> Network::shapes(const Shape& input) const {
  const bool finalized = !cells_.empty() && cells_[0].out.rank() > 0;
  const Shape known = finalized ? input_ : Shape{};
  ShapeSearch search(cells_, input, known);
  LOOM_ASSIGN(std::vector<CellShapes> all, search.run());
#ifndef LOOM_MINIMAL
  if (!finalized) LOOM_TRY(search.check_only_one());
#endif
  return all;
}

}  // namespace loom::core
