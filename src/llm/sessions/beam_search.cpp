#include "llm/sessions/beam_search.hpp"

#include <algorithm>
#include <limits>

#include "base/numbers/checked.hpp"
#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "ops/fmath.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxBeams = 64;

// A running text. `slot` is its sequence, which has read all of it.
struct RunningBeam {
  int64_t slot;
  double sum;
  std::vector<TokenId> ids;
};
// One more token for a running beam.
struct BeamStep {
  double sum;
  size_t beam;
  TokenId id;
};
bool better(const BeamStep& a, const BeamStep& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  return a.beam != b.beam ? a.beam < b.beam : a.id < b.id;
}

// logit - this is a log-probability.
double log_whole(std::span<const float> logits) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const float v : logits) largest = v > largest ? v : largest;
  double sum = 0;
  for (const float v : logits) {
    if (v == v) sum += static_cast<double>(fmath::exp<float>(v - largest));
  }
  return static_cast<double>(largest) + dmath::log(sum);
}

class Beams {
 public:
  Beams(LlmBatch batch, const BeamSearch& search)
      : batch_(std::move(batch)), search_(search), width_(static_cast<size_t>(search.beams)) {}

  Result<std::vector<BeamFound>> run(std::span<const TokenId> prompt) {
    LOOM_TRY(batch_.reader(0)->feed(prompt));
    running_.push_back({0, 0.0, {}});
    const auto room = batch_.context() - static_cast<int64_t>(prompt.size()) + 1;
    const int64_t most = std::min(search_.max_tokens, room);
    for (int64_t length = 1; length <= most; ++length) {
      if (search_.progress && !search_.progress(length - 1))
        return make_error(Code::cancelled, "stopped");
      const std::vector<BeamStep> steps = best_steps();
      const bool last = length == most;
      end_some(steps, length, last);
      const std::vector<BeamStep> next = that_go_on(steps);
      if (last || next.empty() || settled(next, length)) break;
      LOOM_TRY(go_on(next));
    }
    std::ranges::stable_sort(found_, std::greater{}, &BeamFound::score);
    return std::move(found_);
  }

 private:
  bool is_eos(TokenId id) const { return std::ranges::find(search_.eos, id) != search_.eos.end(); }
  double score(double sum, int64_t length) const {
    const double penalty = search_.length_penalty;
    if (penalty == 1.0) return sum / static_cast<double>(length);
    return sum / dmath::exp(penalty * dmath::log(static_cast<double>(length)));
  }

  // Enough steps to keep `beams` if each beam ends in every possible way.
  std::vector<BeamStep> best_steps() {
    const size_t most = width_ * std::max<size_t>(2, 1 + search_.eos.size());
    std::vector<BeamStep> all;
    for (size_t b = 0; b < running_.size(); ++b) {
      const std::span<const float> logits = batch_.logits(running_[b].slot);
      const double whole = log_whole(logits);
      steps_.clear();
      for (size_t id = 0; id < logits.size(); ++id) {
        const double gain = static_cast<double>(logits[id]) - whole;
        if (gain == gain) steps_.push_back({running_[b].sum + gain, b, static_cast<TokenId>(id)});
      }
      const auto kept = static_cast<std::ptrdiff_t>(std::min(most, steps_.size()));
      std::partial_sort(steps_.begin(), steps_.begin() + kept, steps_.end(), better);
      all.insert(all.end(), steps_.begin(), steps_.begin() + kept);
    }
    std::ranges::sort(all, better);
    all.resize(std::min(all.size(), most));
    return all;
  }

  // Takes the ended texts among the first `beams` steps and keeps the best of all ended texts.
  void end_some(const std::vector<BeamStep>& steps, int64_t length, bool last) {
    for (size_t i = 0; i < std::min(width_, steps.size()); ++i) {
      const bool ended = is_eos(steps[i].id);
      if (!ended && !last) continue;
      BeamFound one{running_[steps[i].beam].ids, score(steps[i].sum, length), ended};
      if (!ended) one.ids.push_back(steps[i].id);
      found_.push_back(std::move(one));
    }
    std::ranges::stable_sort(found_, std::greater{}, &BeamFound::score);
    found_.resize(std::min(found_.size(), width_));
  }

  std::vector<BeamStep> that_go_on(const std::vector<BeamStep>& steps) const {
    std::vector<BeamStep> out;
    for (const BeamStep& step : steps) {
      if (out.size() < width_ && !is_eos(step.id)) out.push_back(step);
    }
    return out;
  }

  // Whether no running beam, at its current length, can beat the worst ended text.
  bool settled(const std::vector<BeamStep>& next, int64_t length) const {
    if (found_.size() < width_) return false;
    return search_.early_stopping || score(next[0].sum, length) <= found_.back().score;
  }

  // Each beam of the next round starts with the pages of its parent, in a slot that this round does
  // not use.
  Status go_on(const std::vector<BeamStep>& next) {
    const int64_t free = running_[0].slot < search_.beams ? search_.beams : 0;
    std::vector<RunningBeam> beams;
    std::vector<LlmBatch::Piece> pieces;
    for (size_t i = 0; i < next.size(); ++i) {
      const RunningBeam& from = running_[next[i].beam];
      beams.push_back({free + static_cast<int64_t>(i), next[i].sum, from.ids});
      beams.back().ids.push_back(next[i].id);
      batch_.fork(from.slot, beams.back().slot);
    }
    for (const RunningBeam& old : running_) batch_.rewind(old.slot, 0);
    running_ = std::move(beams);
    for (const RunningBeam& beam : running_)
      pieces.push_back({beam.slot, std::span(beam.ids).last(1)});
    return batch_.feed(pieces);
  }

  LlmBatch batch_;
  const BeamSearch& search_;
  size_t width_;
  std::vector<RunningBeam> running_;
  std::vector<BeamFound> found_;
  std::vector<BeamStep> steps_;
};

}  // namespace

Result<std::vector<BeamFound>> beam_search(const LanguageModel& model, const Ops& ops,
                                           ThreadPool& pool, const LlmBatchOptions& memory,
                                           std::span<const TokenId> prompt,
                                           const BeamSearch& search) {
  if (search.beams < 1 || search.beams > kMaxBeams)
    return invalid(cat("a search keeps 1 to ", kMaxBeams, " beams; got ", search.beams));
  if (prompt.empty())
    return invalid("the prompt holds no token; a text needs at least one to begin with");
  if (search.max_tokens < 0)
    return invalid(cat("max_tokens must be 0 or more; got ", search.max_tokens));
  LOOM_TRY(check_tokens(model, prompt));
  LlmBatchOptions options = memory;
  LOOM_ASSIGN(options.context, checked_context(model, memory.context));
  options.sequences = 2 * search.beams;
  // The last page of a beam is its own.
  options.positions = round_up(options.context, PagePool::kPage) * search.beams;
  LOOM_ASSIGN(LlmBatch batch, LlmBatch::create(model, ops, pool, options));
  return Beams(std::move(batch), search).run(prompt);
}

}  // namespace loom::core
