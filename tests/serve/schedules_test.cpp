// Random schedules of texts that share passes and memory: 1, 2, 4 or 8 slots; texts join, leave and
// wait; prompts share prefixes; memory is short, so that pages are evicted; prompts are read in
// pieces of any size. Slots are saved to files and restored in others; temperatures are 0 and 1;
// any type of weights and of keys and values; drafts come from a model, from earlier text, or there
// are none. Every text equals that of a separate session without speculation, to the bits of its
// log-probabilities.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kScheduleContext = 128;
constexpr DType kWeights[] = {DType::float32, DType::float16, DType::q8_0, DType::q4_0};
constexpr DType kCaches[] = {DType::float32, DType::float16, DType::q8_0, DType::q4_0};

// Counts of events in all schedules, to check that the test covered them.
struct Happened {
  int64_t texts = 0, left = 0, reused = 0, evicted = 0, restored = 0, shifted = 0;
  int64_t guessed = 0;
};

class Schedule {
 public:
  Schedule(const Model& of, const Model& draft, DType cache, uint32_t seed)
      : model_(of), draft_(draft), cache_(cache), random_(seed), seed_(seed) {}
  ~Schedule() {
    for (const Saved& one : saved_) std::remove(one.path.c_str());
  }

  void run(Happened& happened) {
    make_batch();
    asked_ = random_requests(random_, model_, 12);
    writes_.assign(static_cast<size_t>(batch_->sequences()), -1);
    for (int step = 0; step < 4000 && taken_ < asked_.size(); ++step) {
      start_some(happened);
      const Status passed = batch_->step();
      ASSERT_TRUE(passed.ok()) << passed.error().str();
      for (int64_t s = 0; s < batch_->sequences(); ++s) look_at(s, happened);
      if (testing::Test::HasFailure()) return;
    }
    ASSERT_EQ(taken_, asked_.size()) << "seed " << seed_;
    happened.texts += static_cast<int64_t>(asked_.size());
    happened.reused += batch_->counts().reused;
    happened.evicted += batch_->counts().evicted;
  }

 private:
  struct Saved {
    std::string path;
    std::vector<TokenId> read;
  };

  size_t any(size_t most) { return random_() % (most + 1); }

  void make_batch() {
    BatchOptions options;
    options.sequences = int64_t{1} << any(3);
    options.session.context = kScheduleContext;
    options.session.chunk = 1 + static_cast<int64_t>(any(39));
    options.session.cache_type = cache_;
    const size_t spare = static_cast<size_t>((options.sequences - 1) * kScheduleContext);
    if (any(2) > 0) options.positions = kScheduleContext + static_cast<int64_t>(any(spare));
    if (any(1) == 0) options.guesses = 1 + static_cast<int64_t>(any(7));
    if (any(1) == 0) options.draft = &draft_;
    Result<Batch> made = Batch::create(model_, options);
    ASSERT_TRUE(made.ok()) << made.error().str();
    ASSERT_TRUE(made->shares_passes());
    batch_.emplace(std::move(*made));
  }

  void start_some(Happened& happened) {
    for (int64_t s = 0; s < batch_->sequences() && next_ < asked_.size(); ++s) {
      if (writes_[static_cast<size_t>(s)] >= 0 || any(1) == 0) continue;
      Asked& asked = asked_[next_];
      asked.options.logprobs = true;
      asked.options.lookup = any(1) == 0;
      asked.options.guesses = 1 + static_cast<int64_t>(any(9));
      int64_t known = 0;
      const Saved* from = saved_.empty() || any(2) > 0 ? nullptr : &saved_[any(saved_.size() - 1)];
      if (from != nullptr && from->read.size() + 32 < kScheduleContext && restore(s, *from)) {
        asked.prompt.resize(std::min<size_t>(asked.prompt.size(), 8));
        asked.prompt.insert(asked.prompt.begin(), from->read.begin(), from->read.end());
        known = batch_->position(s);
        ASSERT_EQ(known, static_cast<int64_t>(from->read.size()));
        ++happened.restored;
      } else if (any(3) > 0) {
        known = batch_->reuse(s, asked.prompt);
      } else {
        batch_->rewind(s, 0);
      }
      const auto rest = std::span<const TokenId>(asked.prompt).subspan(static_cast<size_t>(known));
      const Status started = batch_->start(s, rest, asked.options);
      ASSERT_TRUE(started.ok()) << started.error().str();
      writes_[static_cast<size_t>(s)] = static_cast<int>(next_++);
    }
  }

  // False: texts that run have the memory.
  bool restore(int64_t s, const Saved& from) {
    const Status restored = batch_->load_state(s, from.path);
    if (restored.ok()) return true;
    const bool others = std::ranges::any_of(writes_, [](int text) { return text >= 0; });
    EXPECT_TRUE(others && restored.error().code == Code::out_of_range) << restored.error().str();
    EXPECT_EQ(batch_->position(s), 0);
    return false;
  }

  void look_at(int64_t s, Happened& happened) {
    const int text = writes_[static_cast<size_t>(s)];
    if (text < 0) return;
    const Asked& asked = asked_[static_cast<size_t>(text)];
    const bool gone = batch_->running(s) && any(60) == 0;
    if (gone) batch_->cancel(s);
    if (batch_->running(s)) return;
    const Result<Generation> got = batch_->take(s);
    ASSERT_TRUE(got.ok()) << got.error().str();
    writes_[static_cast<size_t>(s)] = -1;
    ++taken_;
    expect_alone(asked, *got, gone);
    happened.left += gone ? 1 : 0;
    happened.shifted += got->forgotten_tokens > 0 ? 1 : 0;
    happened.guessed += got->accepted;
    // After a context shift a sequence holds only a part of the prompt and the text.
    if (any(3) == 0 && saved_.size() < 3 && got->forgotten_tokens == 0) save(s, asked, *got);
  }

  void expect_alone(const Asked& asked, const Generation& got, bool gone) {
    Result<ModelSession> session =
        model_.session({.context = kScheduleContext, .cache_type = cache_});
    ASSERT_TRUE(session.ok()) << session.error().str();
    GenerateOptions plain = asked.options;
    plain.lookup = false;
    const Result<Generation> expected = session->generate(asked.prompt, plain);
    ASSERT_TRUE(expected.ok()) << expected.error().str();
    const size_t count = gone ? got.token_ids.size() : expected->token_ids.size();
    ASSERT_LE(count, expected->token_ids.size());
    const auto first = [&](const auto& of) { return std::vector(of.begin(), of.begin() + count); };
    EXPECT_EQ(got.token_ids, first(expected->token_ids)) << "seed " << seed_;
    EXPECT_EQ(got.logprobs, first(expected->logprobs)) << "seed " << seed_;
    if (gone) return;
    EXPECT_EQ(got.text, expected->text) << "seed " << seed_;
    EXPECT_EQ(got.stop, expected->stop) << "seed " << seed_;
  }

  void save(int64_t s, const Asked& asked, const Generation& got) {
    std::vector<TokenId> read = asked.prompt;
    read.insert(read.end(), got.token_ids.begin(), got.token_ids.end());
    read.resize(std::min(read.size(), static_cast<size_t>(batch_->position(s))));
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::string path =
        folder / cat("loom_slot_", getpid(), "_", seed_, "_", saved_.size(), ".state");
    const Status saved = batch_->save_state(s, path);
    ASSERT_TRUE(saved.ok()) << saved.error().str();
    saved_.push_back({path, std::move(read)});
  }

  const Model& model_;
  const Model& draft_;
  DType cache_;
  std::mt19937 random_;
  uint32_t seed_;
  std::optional<Batch> batch_;
  std::vector<Asked> asked_;
  std::vector<int> writes_;  // which text a sequence has
  std::vector<Saved> saved_;
  size_t next_ = 0, taken_ = 0;
};

// Memory for one whole sequence, and three texts. The prefixes of the second and the third take
// pages that were promised to the first, and they wait in the way of earlier texts.
class TightMemory : public testing::Test {
 protected:
  TightMemory() : model_(stories()) {
    Result<Batch> made = Batch::create(
        model_,
        {.sequences = 3, .session = {.context = kScheduleContext}, .positions = kScheduleContext});
    EXPECT_TRUE(made.ok()) << made.error().str();
    batch_.emplace(std::move(*made));
    long_.prompt = *model_.tokenize("Tom had a red ball.");
    long_.options.max_tokens = 110;
    long_.options.ignore_eos = true;
    short_.prompt = *model_.tokenize(
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
        "park with her big dog and her friends.");
    short_.options.max_tokens = 4;
    Asked before = short_;
    before.prompt.pop_back();
    before.options.max_tokens = 1;
    write(1, before);
    steps(100);
    EXPECT_TRUE(batch_->take(1).ok());
    path_ = std::filesystem::temp_directory_path() / cat("loom_tight_", getpid(), ".state");
    batch_->rewind(1, static_cast<int64_t>(before.prompt.size()));
    EXPECT_TRUE(batch_->save_state(1, path_).ok());
  }
  ~TightMemory() override { std::remove(path_.c_str()); }

  void write(int64_t sequence, const Asked& asked, int64_t known = 0) {
    const auto rest = std::span<const TokenId>(asked.prompt).subspan(static_cast<size_t>(known));
    EXPECT_TRUE(batch_->start(sequence, rest, asked.options).ok());
  }
  void steps(int most) {
    for (int i = 0; i < most && batch_->running() > 0; ++i) {
      const Status passed = batch_->step();
      ASSERT_TRUE(passed.ok()) << passed.error().str();
    }
  }
  void expect(int64_t sequence, const Asked& asked) {
    ASSERT_FALSE(batch_->running(sequence)) << sequence;
    const Result<Generation> got = batch_->take(sequence);
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_EQ(got->token_ids, alone(model_, asked).token_ids);
  }

  const Model model_;
  std::optional<Batch> batch_;
  std::string path_;
  Asked long_, short_;
};

TEST_F(TightMemory, IsKeptForTheTextThatRuns) {
  batch_->rewind(1, 0);
  write(0, long_);
  steps(3);
  ASSERT_TRUE(batch_->load_state(1, path_).ok());
  write(1, short_, batch_->position(1));
  write(2, short_, batch_->reuse(2, short_.prompt));
  steps(1000);
  expect(0, long_);
  expect(1, short_);
  expect(2, short_);
}

TEST_F(TightMemory, IsGivenUpByTextsThatWaitForOneBeforeThem) {
  const int64_t known = batch_->reuse(1, short_.prompt);
  EXPECT_GT(known, 16);
  write(0, long_);
  write(1, short_, known);
  steps(1000);
  expect(0, long_);
  expect(1, short_);
}

TEST_F(TightMemory, IsNoReasonToReadAgainWhatAShiftForgot) {
  Asked shifts = short_;
  shifts.options.max_tokens = 150;
  shifts.options.ignore_eos = shifts.options.shift_context = true;
  shifts.options.keep_tokens = 2;
  shifts.options.shift_tokens = 40;
  write(1, shifts, batch_->reuse(1, shifts.prompt));
  steps(1000);
  expect(1, shifts);
}

TEST_F(TightMemory, IsTakenFromAStateThatNobodyGoesOnFrom) {
  batch_->rewind(1, 0);
  write(0, long_);
  steps(3);
  ASSERT_TRUE(batch_->load_state(1, path_).ok());
  steps(1000);
  EXPECT_EQ(batch_->position(1), 0);
  expect(0, long_);
}

void expect_schedules(int count, uint32_t seed) {
  std::vector<Model> models;
  for (const DType weights : kWeights)
    models.push_back(stories(weights, weights == DType::q4_0 ? 2 : 1));
  const Model draft = draft_of();
  Happened happened;
  for (int i = 0; i < count; ++i) {
    const size_t pair = static_cast<size_t>(i) % 16;
    Schedule schedule(models[pair % 4], draft, kCaches[pair / 4], seed + static_cast<uint32_t>(i));
    schedule.run(happened);
    if (testing::Test::HasFailure()) return;
  }
  const std::string report = cat(
      count, " schedules: ", happened.texts, " texts, ", happened.left, " left, ", happened.reused,
      " positions reused, ", happened.evicted, " evicted, ", happened.restored, " slots restored, ",
      happened.shifted, " shifted, ", happened.guessed, " guessed right\n");
  std::fputs(report.c_str(), stdout);
  EXPECT_GT(happened.left, 0);
  EXPECT_GT(happened.reused, 8 * count);
  EXPECT_GT(happened.evicted, count);
  EXPECT_GT(happened.restored, count / 8);
  EXPECT_GT(happened.shifted, count / 8);
  EXPECT_GT(happened.guessed, 8 * count);
}

TEST(SameBytes, ForAnyScheduleOfSlots) {
  expect_schedules(16, 1);
}
// By hand: LOOM_SCHEDULES=1000 build/dev/tests/test_serve --gtest_filter='*AskedForLonger*'
TEST(SameBytes, ForAsManySchedulesAsAskedForLonger) {
  const char* setting = std::getenv("LOOM_SCHEDULES");
  if (setting == nullptr) GTEST_SKIP() << "LOOM_SCHEDULES is not set";
  expect_schedules(std::atoi(setting), 1000);
}

}  // namespace
}  // namespace loom::core::test
