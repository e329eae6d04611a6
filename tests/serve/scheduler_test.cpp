#include "serve/scheduler.hpp"

#include <chrono>
#include <future>

#include "base/text.hpp"
#include "base/waits.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

SchedulerOptions small(int64_t sessions, int64_t waiting = 1000) {
  SchedulerOptions options;
  options.sessions = sessions;
  options.waiting = waiting;
  options.session.context = 128;
  return options;
}

// A job whose text comes by a future.
std::pair<std::unique_ptr<Job>, std::future<Result<Generation>>> job_of(const Asked& asked) {
  auto job = std::make_unique<Job>();
  job->prompt = asked.prompt;
  job->options = asked.options;
  const auto promise = std::make_shared<std::promise<Result<Generation>>>();
  job->done = [promise](Result<Generation> text, int64_t) { promise->set_value(std::move(text)); };
  return {std::move(job), promise->get_future()};
}

// The tokens of a text do not depend on other work of the scheduler: sessions, order, cancelled
// texts, earlier contents of sessions, and the pieces of prompts.
void expect_same_bytes(DType dtype, int schedules, uint32_t seed, bool guesses = false) {
  const Model model = stories(dtype);
  int64_t guessed = 0;
  std::mt19937 random(seed);
  for (int round = 0; round < schedules; ++round) {
    const std::vector<Asked> requests = random_requests(random, model, 12);
    SchedulerOptions options = small(1 + static_cast<int64_t>(random() % 8));
    options.session.chunk = 1 + static_cast<int64_t>(random() % 40);
    if (guesses) {
      options.session.chunk += 20;
      options.guesses = 1 + static_cast<int64_t>(random() % 9);
      options.lookup = random() % 2 == 0;
      if (!options.lookup || random() % 2 == 0) options.draft = draft_of();
    }
    auto scheduler = Scheduler::create(model, options);
    ASSERT_TRUE(scheduler.ok()) << scheduler.error().str();
    std::vector<std::future<Result<Generation>>> texts;
    for (const Asked& asked : requests) {
      if (random() % 4 == 0) {  // one that goes away after some tokens
        auto [gone, ignored] = job_of(requests[random() % requests.size()]);
        gone->is_cancelled = [left = static_cast<int>(random() % 10)]() mutable {
          return left-- <= 0;
        };
        ASSERT_TRUE((*scheduler)->add(std::move(gone)));
      }
      auto [job, text] = job_of(asked);
      ASSERT_TRUE((*scheduler)->add(std::move(job)));
      texts.push_back(std::move(text));
      if (random() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(texts[i].wait_for(kDeadline), std::future_status::ready);
      const Result<Generation> text = texts[i].get();
      ASSERT_TRUE(text.ok()) << text.error().str();
      const Generation expected = alone(model, requests[i]);
      EXPECT_EQ(text->token_ids, expected.token_ids) << "round " << round << " text " << i;
      EXPECT_EQ(text->text, expected.text);
      EXPECT_EQ(text->stop, expected.stop);
      guessed += text->guessed;
    }
  }
  EXPECT_EQ(guessed > 0, guesses);
}

TEST(SameBytes, ForAnyScheduleInF32) {
  expect_same_bytes(DType::float32, 10, 1);
}
TEST(SameBytes, ForAnyScheduleInF16) {
  expect_same_bytes(DType::float16, 10, 2);
}
TEST(SameBytes, ForAnyScheduleInQ8) {
  expect_same_bytes(DType::q8_0, 10, 3);
}
TEST(SameBytes, ForAnyScheduleInQ4) {
  expect_same_bytes(DType::q4_0, 10, 4);
}
TEST(SameBytes, ForAnyScheduleWithGuesses) {
  expect_same_bytes(DType::q8_0, 20, 5, true);
}
// By hand: LOOM_SCHEDULES=100 build/dev/tests/test_serve --gtest_filter='*Threads*'
TEST(SameBytes, ForAsManySchedulesOfThreadsAsAskedFor) {
  const char* setting = std::getenv("LOOM_SCHEDULES");
  if (setting == nullptr) GTEST_SKIP() << "LOOM_SCHEDULES is not set";
  uint32_t seed = 100;
  for (const DType dtype : {DType::float32, DType::float16, DType::q8_0, DType::q4_0})
    expect_same_bytes(dtype, std::atoi(setting), seed++);
}

TEST(Schedulers, GoOnFromWhatASessionHasRead) {
  const Model model = stories();
  auto scheduler = Scheduler::create(model, small(2));
  ASSERT_TRUE(scheduler.ok());
  std::mt19937 random(5);
  Asked asked;
  asked.prompt = *model.tokenize("Once upon a time, there was a little girl named Lily.");
  asked.options.max_tokens = 5;
  const auto size = static_cast<int64_t>(asked.prompt.size());
  std::vector<int64_t> cached;
  for (int i = 0; i < 3; ++i) {
    auto job = std::make_unique<Job>();
    job->prompt = asked.prompt;
    job->options = asked.options;
    std::promise<int64_t> report;
    job->done = [&](Result<Generation>, int64_t n) { report.set_value(n); };
    ASSERT_TRUE((*scheduler)->add(std::move(job)));
    cached.push_back(report.get_future().get());
  }
  EXPECT_EQ(cached, (std::vector<int64_t>{0, size - 1, size - 1}));
  EXPECT_EQ((*scheduler)->counts().cached_tokens, 2 * (size - 1));
  EXPECT_EQ((*scheduler)->counts().prompt_tokens, 3 * size);
}

TEST(Schedulers, TellWhatWasGuessed) {
  const Model model = stories();
  SchedulerOptions options = small(2);
  options.guesses = 6;
  options.draft = draft_of();
  auto scheduler = Scheduler::create(model, options);
  ASSERT_TRUE(scheduler.ok()) << scheduler.error().str();
  for (const int64_t guesses : {6, 0}) {
    Asked asked{*model.tokenize("Once upon a time"), {}};
    asked.options.max_tokens = 40;
    asked.options.guesses = guesses;
    auto [job, text] = job_of(asked);
    ASSERT_TRUE((*scheduler)->add(std::move(job)));
    const Result<Generation> got = text.get();
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_EQ(got->token_ids, alone(model, asked).token_ids);
    EXPECT_EQ(got->accepted > 10, guesses > 0);
    if (guesses > 0) {
      EXPECT_LT(got->passes, 35);
    }
  }
  EXPECT_GT((*scheduler)->counts().guessed, (*scheduler)->counts().guesses);
  // A smaller model with other tokens cannot guess.
  Result<Model> other =
      Model::random(*Engine::create({.threads = 1}), "tiny", loom::DType::q8_0, 1);
  ASSERT_TRUE(other.ok());
  options.draft = *other;
  EXPECT_NE(Scheduler::create(model, options).error().str().find("the same vocabulary"),
            std::string::npos);
}

TEST(Schedulers, GiveEachTextItsTurn) {
  const Model model = stories();
  auto scheduler = Scheduler::create(model, small(2));
  ASSERT_TRUE(scheduler.ok());
  std::mutex mutex;
  std::string order;
  std::vector<std::future<Result<Generation>>> texts;
  std::vector<std::unique_ptr<Job>> jobs;
  for (const char letter : {'a', 'b'}) {
    Asked asked{*model.tokenize("Tom had"), {}};
    asked.options.max_tokens = 8;
    asked.options.ignore_eos = true;
    auto [job, text] = job_of(asked);
    job->options.on_token = [&, letter](const Token&) {
      const std::lock_guard lock(mutex);
      order += letter;
      return true;
    };
    jobs.push_back(std::move(job));
    texts.push_back(std::move(text));
  }
  ASSERT_TRUE((*scheduler)->add(std::move(jobs)));
  for (auto& text : texts) text.wait();
  EXPECT_EQ(order, "abababababababab");
}

TEST(Schedulers, TakeNoMoreThanMayWait) {
  const Model model = stories();
  auto scheduler = Scheduler::create(model, small(1, 1));
  ASSERT_TRUE(scheduler.ok());
  std::promise<void> go;
  const std::shared_future<void> gate = go.get_future().share();
  Asked asked{*model.tokenize("Tom"), {}};
  asked.options.max_tokens = 3;
  auto [held, first] = job_of(asked);
  std::promise<void> running;
  held->options.on_token = [&, report = false](const Token&) mutable {
    if (!std::exchange(report, true)) running.set_value();
    gate.wait();
    return true;
  };
  ASSERT_TRUE((*scheduler)->add(std::move(held)));
  running.get_future().wait();
  auto [waits, second] = job_of(asked);
  EXPECT_TRUE((*scheduler)->add(std::move(waits)));
  auto [refused, third] = job_of(asked);
  EXPECT_FALSE((*scheduler)->add(std::move(refused)));
  EXPECT_EQ((*scheduler)->counts().waiting, 1);
  EXPECT_FALSE((*scheduler)->drain(1));
  go.set_value();
  EXPECT_TRUE((*scheduler)->drain(kDeadlineMs));
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
}

// A call that waits for a sequence to end its text is work too, for example saving its state.
TEST(Schedulers, AreNotDrainedWhileSomebodyWaitsForASequence) {
  const Model model = stories();
  auto scheduler = Scheduler::create(model, small(1));
  ASSERT_TRUE(scheduler.ok());
  std::promise<void> ended, go;
  auto job = std::make_unique<Job>();
  job->prompt = *model.tokenize("Tom");
  job->options.max_tokens = 2;
  job->done = [&](const Result<Generation>&, int64_t) {
    ended.set_value();
    go.get_future().wait();
  };
  std::promise<bool> called;
  ASSERT_TRUE((*scheduler)->add(std::move(job)));
  ended.get_future().wait();  // nothing runs or waits any more
  ASSERT_TRUE((*scheduler)->when_idle(0, [&](const Result<Batch*>& batch) {
    called.set_value(batch.ok());
  }));
  EXPECT_FALSE((*scheduler)->drain(20));
  go.set_value();
  EXPECT_TRUE((*scheduler)->drain(kDeadlineMs));
  (*scheduler)->stop();
  EXPECT_TRUE(called.get_future().get());
}

TEST(Schedulers, TellErrorsAndEndWhatRunsWhenTheyStop) {
  const Model model = stories();
  auto scheduler = Scheduler::create(model, small(1));
  ASSERT_TRUE(scheduler.ok());
  Asked bad{*model.tokenize("Tom"), {}};
  bad.options.stop = {"\xff"};
  auto [wrong, error] = job_of(bad);
  ASSERT_TRUE((*scheduler)->add(std::move(wrong)));
  EXPECT_FALSE(error.get().ok());
  Asked endless{*model.tokenize("Tom"), {}};
  std::vector<std::future<Result<Generation>>> texts;
  for (int i = 0; i < 3; ++i) {
    auto [job, text] = job_of(endless);
    job->options.max_tokens = 1 << 20;
    job->options.ignore_eos = true;
    job->options.shift_context = true;  // it ends when the scheduler does, and not before
    ASSERT_TRUE((*scheduler)->add(std::move(job)));
    texts.push_back(std::move(text));
  }
  (*scheduler)->stop();
  for (auto& text : texts) {
    const Result<Generation> ended = text.get();
    ASSERT_TRUE(ended.ok());
    EXPECT_EQ(ended->stop, StopReason::cancelled);
  }
  auto [late, never] = job_of(endless);
  EXPECT_FALSE((*scheduler)->add(std::move(late)));
}

}  // namespace
}  // namespace loom::core::test
