#include "puzzle/test_time.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "base/threads/thread_pool.hpp"
#include "evolve/draws.hpp"
#include "grid/builders.hpp"
#include "grid/init.hpp"
#include "puzzle/grid_ops.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kTestTimeStream = uint64_t{1} << 57;
// Inputs of a cell: the colours of the window around it (and a further one for outside), and of the
// three mirrored cells. For each it also has whether it is coloured at all: many rules depend on
// that, and few pairs show it for every colour.
constexpr int kWindow = 2, kSide = 2 * kWindow + 1, kKinds = kPuzzleColours + 2, kMirrored = 3;
constexpr int64_t kFeatures = (kSide * kSide + kMirrored) * kKinds;

void see(const PuzzleGrid& g, int r, int c, float* out) {
  std::fill(out, out + kFeatures, 0.0f);
  int64_t at = 0;
  const auto put = [&](int kind) {
    out[at + kind] = 1.0f;
    if (kind > 0 && kind < kPuzzleColours) out[at + kKinds - 1] = 1.0f;
    at += kKinds;
  };
  for (int i = -kWindow; i <= kWindow; ++i) {
    for (int j = -kWindow; j <= kWindow; ++j)
      put(g.inside(r + i, c + j) ? g.at(r + i, c + j) : kPuzzleColours);
  }
  put(g.at(r, g.cols - 1 - c));
  put(g.at(g.rows - 1 - r, c));
  put(g.at(g.rows - 1 - r, g.cols - 1 - c));
}

struct SeenCell {
  const PuzzlePair* pair;
  int r, c;
};

std::vector<SeenCell> cells_of(const std::vector<PuzzlePair>& pairs) {
  std::vector<SeenCell> out;
  for (const PuzzlePair& p : pairs) {
    for (int r = 0; r < p.in.rows; ++r) {
      for (int c = 0; c < p.in.cols; ++c) out.push_back({&p, r, c});
    }
  }
  return out;
}

// Augmentation of the shown pairs. The right kind for a puzzle is found by answering a held-out
// pair.
struct Augmentation {
  bool turns = false, colours = false;
};
constexpr Augmentation kAugmentations[] = {{}, {true, false}, {false, true}, {true, true}};

// Adds mirror images and rotations of both sides.
void add_turns(std::vector<PuzzlePair>& pairs) {
  const std::vector<PuzzlePair> all = pairs;
  for (auto op = GridOp::flip_sides; op <= GridOp::turn_left;
       op = static_cast<GridOp>(static_cast<int>(op) + 1)) {
    for (const PuzzlePair& p : all) pairs.push_back({apply({op}, p.in), apply({op}, p.out)});
  }
}

// Permutes colours of inputs; the background and colours that only outputs have stay.
void add_colours(std::vector<PuzzlePair>& pairs, Draws& draws) {
  constexpr int kCopies = 4;
  std::vector<uint8_t> seen;
  for (const PuzzlePair& p : pairs) {
    for (const uint8_t v : p.in.cells) {
      if (v != 0 && std::ranges::find(seen, v) == seen.end()) seen.push_back(v);
    }
  }
  // Unused colours may take part, except those that outputs add.
  for (uint8_t v = 1; v < kPuzzleColours; ++v) {
    const bool brought = std::ranges::any_of(pairs, [&](const PuzzlePair& p) {
      return std::ranges::find(p.out.cells, v) != p.out.cells.end();
    });
    if (!brought && std::ranges::find(seen, v) == seen.end()) seen.push_back(v);
  }
  const std::vector<PuzzlePair> all = pairs;
  for (int copy = 0; copy < kCopies; ++copy) {
    std::vector<uint8_t> order = seen;
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
    std::vector<uint8_t> to(kPuzzleColours);
    std::iota(to.begin(), to.end(), uint8_t{0});
    for (size_t i = 0; i < seen.size(); ++i) to[seen[i]] = order[i];
    for (PuzzlePair p : all) {
      for (uint8_t& v : p.in.cells) v = to[v];
      for (uint8_t& v : p.out.cells) v = to[v];
      pairs.push_back(std::move(p));
    }
  }
}

std::vector<PuzzlePair> augmented(std::vector<PuzzlePair> pairs, const Augmentation& how,
                                  Draws& draws) {
  if (how.colours) add_colours(pairs, draws);
  if (how.turns) add_turns(pairs);
  return pairs;
}

bool keeps_sizes(const Puzzle& puzzle) {
  return std::ranges::all_of(puzzle.train, [](const PuzzlePair& p) {
    return p.in.rows == p.out.rows && p.in.cols == p.out.cols;
  });
}

class CellTrainer {
 public:
  static Result<CellTrainer> create(const TestTimeOptions& how, const Ops& ops, ThreadPool& pool) {
    LOOM_ASSIGN(const NetworkSpec spec,
                build_mlp({.in = kFeatures, .out = kPuzzleColours, .hidden = {how.hidden}}));
    CellTrainer out(how);
    LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(how.batch)));
    out.network_ = std::make_unique<Network>(std::move(network));
    LOOM_TRY(init_params(*out.network_, DType::f32, how.seed, pool));
    TrainStepOptions options;
    options.optimizer = {.kind = loom::OptimizerKind::adamw, .weight_decay = 0.01f};
    options.loss.kind = Loss::cross_entropy;
    options.class_ids = true;
    options.seed = how.seed;
    LOOM_ASSIGN(TrainStep step, TrainStep::create(*out.network_, options, ops, pool));
    out.step_ = std::make_unique<TrainStep>(std::move(step));
    return out;
  }

  Status train(const std::vector<SeenCell>& cells, Draws& draws) {
    for (int64_t i = 0; i < how_.steps; ++i) {
      std::vector<SeenCell> batch;
      for (int64_t b = 0; b < how_.batch; ++b) batch.push_back(cells[draws.below(cells.size())]);
      fill(batch);
      const double rest = 1 - static_cast<double>(i) / static_cast<double>(how_.steps);
      LOOM_TRY(step_->run(how_.rate * rest));
    }
    return {};
  }

  // At a rate of 0 a step is a forward pass without updates.
  Result<PuzzleGrid> answer(const PuzzlePair& pair) {
    PuzzleGrid out = pair.in;
    const std::vector<SeenCell> cells = cells_of({pair});
    for (size_t first = 0; first < cells.size(); first += static_cast<size_t>(how_.batch)) {
      const size_t count = std::min(cells.size() - first, static_cast<size_t>(how_.batch));
      std::vector<SeenCell> batch;
      for (size_t i = 0; i < count; ++i)
        batch.push_back({&pair, cells[first + i].r, cells[first + i].c});
      fill(batch);
      LOOM_TRY(step_->run(0));
      for (size_t i = 0; i < count; ++i) {
        const float* row = step_->y().f32() + i * kPuzzleColours;
        out.at(batch[i].r, batch[i].c) =
            static_cast<uint8_t>(std::max_element(row, row + kPuzzleColours) - row);
      }
    }
    return out;
  }

 private:
  explicit CellTrainer(const TestTimeOptions& how) : how_(how) {}

  void fill(const std::vector<SeenCell>& batch) {
    for (size_t i = 0; i < static_cast<size_t>(how_.batch); ++i) {
      const SeenCell& cell = batch[std::min(i, batch.size() - 1)];
      see(cell.pair->in, cell.r, cell.c, step_->x().f32() + i * kFeatures);
      const bool known = !cell.pair->out.empty() && cell.pair->out.inside(cell.r, cell.c);
      step_->target().i32()[i] = known ? cell.pair->out.at(cell.r, cell.c) : 0;
      step_->weight().f32()[i] = 1.0f / static_cast<float>(how_.batch);
    }
  }

  TestTimeOptions how_;
  std::unique_ptr<Network> network_;  // must not move, because the step refers to it
  std::unique_ptr<TrainStep> step_;
};

Result<CellTrainer> trained_on(const std::vector<PuzzlePair>& pairs, const Augmentation& more,
                               const TestTimeOptions& how, const Ops& ops, ThreadPool& pool) {
  Draws draws(how.seed, kTestTimeStream);
  const std::vector<PuzzlePair> all = augmented(pairs, more, draws);
  LOOM_ASSIGN(CellTrainer trainer, CellTrainer::create(how, ops, pool));
  LOOM_TRY(trainer.train(cells_of(all), draws));
  return trainer;
}

// The share of right cells.
Result<double> share_right(CellTrainer& trainer, const std::vector<PuzzlePair>& pairs) {
  size_t right = 0, all = 0;
  for (const PuzzlePair& p : pairs) {
    LOOM_ASSIGN(const PuzzleGrid reply, trainer.answer(p));
    for (size_t i = 0; i < reply.cells.size(); ++i)
      right += reply.cells[i] == p.out.cells[i] ? 1 : 0;
    all += reply.cells.size();
  }
  return static_cast<double>(right) / static_cast<double>(all);
}

// Chooses by answering the last pair after training on the others; of equal results the first,
// which assumes least.
Result<Augmentation> choose_augmentation(const Puzzle& puzzle, const TestTimeOptions& how,
                                         const Ops& ops, ThreadPool& pool) {
  Augmentation best;
  if (puzzle.train.size() < 2) return best;
  const std::vector<PuzzlePair> shown(puzzle.train.begin(), puzzle.train.end() - 1);
  const std::vector<PuzzlePair> held(puzzle.train.end() - 1, puzzle.train.end());
  double most = -1;
  for (const Augmentation& one : kAugmentations) {
    LOOM_ASSIGN(CellTrainer trainer, trained_on(shown, one, how, ops, pool));
    LOOM_ASSIGN(const double right, share_right(trainer, held));
    if (right > most) best = one;
    most = std::max(most, right);
  }
  return best;
}

}  // namespace

Result<TestTimeAnswer> train_at_test_time(const Puzzle& puzzle, const TestTimeOptions& how,
                                          const Ops& ops, ThreadPool& pool) {
  TestTimeAnswer out;
  out.applies = keeps_sizes(puzzle);
  if (!out.applies) return out;
  LOOM_ASSIGN(const Augmentation more, choose_augmentation(puzzle, how, ops, pool));
  LOOM_ASSIGN(CellTrainer trainer, trained_on(puzzle.train, more, how, ops, pool));
  LOOM_ASSIGN(out.shown, share_right(trainer, puzzle.train));
  for (const PuzzlePair& p : puzzle.test) {
    PuzzlePair asked;
    asked.in = p.in;
    LOOM_ASSIGN(PuzzleGrid reply, trainer.answer(asked));
    out.answers.push_back(std::move(reply));
  }
  return out;
}

}  // namespace loom::core
