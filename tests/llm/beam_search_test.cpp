// Beam search compared with a reference that follows transformers' _beam_search array by array. The
// reference reads every text from its start, and sums in long double with the C library.
#include "llm/sessions/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/text.hpp"
#include "llm/stories.hpp"

namespace loom::core {
namespace {

using Text = std::vector<TokenId>;

struct Scored {
  Text ids;
  long double score = -1e9L;
  bool ended = false;
};

class Evaluator {
 public:
  Evaluator(const LanguageModel& model, int64_t context, const Text& prompt, const BeamSearch& how)
      : session_(make(model, context)), prompt_(prompt), how_(how) {}

  std::vector<Scored> run() {
    const auto k = static_cast<size_t>(how_.beams);
    const auto most = std::min<int64_t>(
        how_.max_tokens, session_.context() - static_cast<int64_t>(prompt_.size()) + 1);
    std::vector<Scored> running(k), done(k);
    running[0].score = 0;
    std::vector<bool> is_done(k, false);
    for (int64_t length = 1; length <= most; ++length) {
      std::vector<Scored> top = top_of(running, k * std::max<size_t>(2, 1 + how_.eos.size()));
      std::vector<Scored> next;
      bool all_end = true;
      for (size_t i = 0; i < top.size(); ++i) {
        const bool eos = std::ranges::count(how_.eos, top[i].ids.back()) > 0;
        const bool ends = eos || length == most;
        all_end = all_end && ends;
        if (!ends && next.size() < k) next.push_back(top[i]);
        if (!ends || i >= k) continue;
        Scored finished = top[i];
        finished.score /= std::pow(static_cast<long double>(length), how_.length_penalty);
        finished.ended = eos;
        if (eos) finished.ids.pop_back();
        insert(done, is_done, finished);
      }
      const bool full = std::ranges::count(is_done, true) == how_.beams;
      long double worst = 0;
      for (const Scored& one : done) worst = std::min(worst, one.score);
      const bool hopeful =
          !next.empty() &&
          (!full ||
           next[0].score / std::pow(static_cast<long double>(length), how_.length_penalty) > worst);
      if (all_end || !hopeful || (full && how_.early_stopping)) break;
      while (next.size() < k) next.push_back({});
      running = next;
    }
    std::vector<Scored> out;
    for (size_t i = 0; i < k; ++i) {
      if (is_done[i]) out.push_back(done[i]);
    }
    std::ranges::stable_sort(out, std::greater{}, &Scored::score);
    return out;
  }

 private:
  static LlmSession make(const LanguageModel& model, int64_t context) {
    LlmSessionOptions options;
    options.context = context;
    return test::session(model, options);
  }
  static void insert(std::vector<Scored>& done, std::vector<bool>& is_done, const Scored& one) {
    size_t worst = 0;
    for (size_t i = 1; i < done.size(); ++i) {
      if (done[i].score < done[worst].score) worst = i;
    }
    if (one.score <= done[worst].score) return;
    done[worst] = one;
    is_done[worst] = true;
  }
  std::vector<Scored> top_of(const std::vector<Scored>& running, size_t count) {
    std::vector<Scored> all;
    for (const Scored& one : running) {
      if (one.score < -1e8L) continue;
      Text whole = prompt_;
      whole.insert(whole.end(), one.ids.begin(), one.ids.end());
      session_.rewind(0);
      EXPECT_TRUE(session_.feed(whole).ok());
      const std::span<const float> logits = session_.logits();
      long double sum = 0;
      for (const float v : logits) sum += std::exp(static_cast<long double>(v));
      for (size_t id = 0; id < logits.size(); ++id) {
        Scored longer = one;
        longer.ids.push_back(static_cast<TokenId>(id));
        longer.score += static_cast<long double>(logits[id]) - std::log(sum);
        all.push_back(std::move(longer));
      }
    }
    std::ranges::stable_sort(all, std::greater{}, &Scored::score);
    all.resize(std::min(all.size(), count));
    return all;
  }
  LlmSession session_;
  const Text& prompt_;
  const BeamSearch& how_;
};

TEST(BeamSearches, FindWhatTransformersRulesFind) {
  const LanguageModel& model = test::stories();
  std::mt19937 random(3);
  const std::string texts[] = {"Once upon a time", "Tom had a red", "Lily and her dog", "The end"};
  int ended = 0;
  for (int i = 0; i < 40; ++i) {
    SCOPED_TRACE(i);
    Text prompt = test::encode(model, texts[i % 4]);
    if (i % 3 == 0) prompt.push_back(static_cast<TokenId>(3 + random() % 1000));
    BeamSearch how;
    how.beams = 1 + static_cast<int64_t>(random() % 5);
    how.max_tokens = 1 + static_cast<int64_t>(random() % 12);
    constexpr double kPenalties[] = {1.0, 0.0, 2.0, -0.5};
    how.length_penalty = kPenalties[random() % 4];
    how.early_stopping = random() % 2 == 0;
    // Ends of texts are rare in so few tokens; spaces and commas are not.
    for (size_t n = random() % 3; n > 0; --n)
      how.eos.push_back(static_cast<TokenId>(3 + random() % 120));
    for (const TokenId id : test::encode(model, " a, was.")) {
      if (random() % 4 == 0) how.eos.push_back(id);
    }
    LlmBatchOptions memory;
    memory.context = 24;
    const Result<std::vector<BeamFound>> found =
        beam_search(model, cpu_ops(best_isa()), test::pool(), memory, prompt, how);
    ASSERT_TRUE(found.ok()) << found.error().str();
    const std::vector<Scored> expected = Evaluator(model, memory.context, prompt, how).run();
    ASSERT_EQ(found->size(), expected.size());
    for (size_t n = 0; n < expected.size(); ++n) {
      EXPECT_EQ((*found)[n].ids, expected[n].ids) << n;
      EXPECT_NEAR((*found)[n].score, static_cast<double>(expected[n].score), 1e-5) << n;
      EXPECT_EQ((*found)[n].ended, expected[n].ended);
      ended += expected[n].ended ? 1 : 0;
    }
  }
  EXPECT_GT(ended, 20);
}

TEST(BeamSearches, FillContextsThatEndInTheMiddleOfAPage) {
  const LanguageModel& model = test::stories();
  const Text prompt = {5, 6};
  for (const int64_t context : {3, 6, 15, 16, 17, 24, 33}) {
    for (const int64_t beams : {2, 3, 5}) {
      SCOPED_TRACE(cat(context, " positions, ", beams, " beams"));
      BeamSearch how;
      how.beams = beams;
      how.max_tokens = context;
      LlmBatchOptions memory;
      memory.context = context;
      const auto found = beam_search(model, cpu_ops(best_isa()), test::pool(), memory, prompt, how);
      ASSERT_TRUE(found.ok()) << found.error().str();
      EXPECT_EQ(static_cast<int64_t>(found->front().ids.size()), context - 1);
    }
  }
}

TEST(BeamSearches, OfOneBeamAreGreedy) {
  const LanguageModel& model = test::stories();
  const Text prompt = test::encode(model, "Once upon a time");
  LlmSession session = test::session(model);
  GenerateOptions greedy;
  greedy.max_tokens = 30;
  const Result<Generation> expected = generate(session, model, prompt, greedy);
  ASSERT_TRUE(expected.ok());
  BeamSearch how;
  how.beams = 1;
  how.max_tokens = 30;
  const auto found = beam_search(model, cpu_ops(best_isa()), test::pool(), {}, prompt, how);
  ASSERT_TRUE(found.ok()) << found.error().str();
  EXPECT_EQ((*found)[0].ids, expected->token_ids);
}

TEST(BeamSearches, RefuseWhatCannotBe) {
  const LanguageModel& model = test::stories();
  const Text prompt = {5, 6};
  const auto refused = [&](const Text& text, auto change) {
    BeamSearch how;
    change(how);
    LlmBatchOptions memory;
    memory.context = 16;
    const auto found = beam_search(model, cpu_ops(best_isa()), test::pool(), memory, text, how);
    return found.ok() ? std::string() : found.error().str();
  };
  const auto same = [](BeamSearch&) {};
  EXPECT_EQ(refused(prompt, [](BeamSearch& how) { how.beams = 0; }),
            "a search keeps 1 to 64 beams; got 0");
  EXPECT_EQ(refused(prompt, [](BeamSearch& how) { how.max_tokens = -1; }),
            "max_tokens must be 0 or more; got -1");
  EXPECT_EQ(refused({}, same),
            "the prompt holds no token; a text needs at least one to begin with");
  EXPECT_EQ(refused(Text(17, 5), same),
            "the context is full: 0 positions used, 17 more wanted, 16 available");
  EXPECT_EQ(refused(prompt, [](BeamSearch& how) { how.progress = [](int64_t) { return false; }; }),
            "stopped");
}

}  // namespace
}  // namespace loom::core
