// LlmBatch: sequences in shared passes have the logits of separate sessions, for any split of their
// tokens into passes, any neighbours, and every decoder.
#include "llm/sessions/llm_batch.hpp"

#include <cmath>
#include <random>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/init.hpp"
#include "llm/stories.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

LlmBatch batch_of(const LanguageModel& model, LlmBatchOptions options = {}) {
  Result<LlmBatch> made = LlmBatch::create(model, cpu_ops(best_isa()), test::pool(), options);
  EXPECT_TRUE(made.ok()) << made.error().str();
  return std::move(*made);
}

using Logits = std::vector<float>;

// The logits of every position, in a separate session.
std::vector<Logits> alone(const LanguageModel& model, std::span<const TokenId> ids, int64_t context,
                          ActivationMode mode, DType cache) {
  LlmSessionOptions options;
  options.context = context;
  options.activations = mode;
  options.cache = cache;
  LlmSession session = test::session(model, options);
  std::vector<Logits> all;
  const auto keep = [&](int64_t, std::span<const float> logits) -> Status {
    all.emplace_back(logits.begin(), logits.end());
    return {};
  };
  const Status fed = session.feed_all(ids, keep);
  EXPECT_TRUE(fed.ok()) << fed.error().str();
  return all;
}

// Random events between passes. A sequence drops some positions, or drops all and reuses a prefix
// that others have read. Or it is saved, and restored into another sequence of its text.
void between(LlmBatch& batch, std::mt19937& random, int64_t s,
             const std::vector<std::vector<TokenId>>& texts) {
  const std::vector<TokenId>& text = texts[static_cast<size_t>(s)];
  const auto chance = random() % 30;
  if (chance < 3) batch.rewind(s, static_cast<int64_t>(random() % text.size()));
  if (chance == 3 || chance == 4)
    batch.reuse(s, std::span(text).first(random() % (text.size() + 1)));
  if (chance == 5) batch.publish(s);
  if (chance != 6) return;
  std::string file;
  const Status saved = batch.save_state(s, FileRef::into("state", file));
  ASSERT_TRUE(saved.ok()) << saved.error().str();
  const int64_t read = batch.position(s);
  if (random() % 2 == 0) batch.park(s);
  const Status loaded =
      batch.load_state(s, FileRef::of_bytes("state", std::as_bytes(std::span(file))));
  ASSERT_TRUE(loaded.ok()) << loaded.error().str();
  ASSERT_EQ(batch.position(s), read);
}

// Random texts with some common prefixes, in random passes: in each, a sequence is idle, reads one
// token, or reads a piece.
void expect_alone(const LanguageModel& model, ActivationMode mode, uint32_t seed,
                  DType cache = DType::f32) {
  constexpr int64_t kContext = 40, kSequences = 5;
  std::mt19937 random(seed);
  const auto any = [&](int64_t most) { return static_cast<int64_t>(random()) % (most + 1); };
  LlmBatchOptions options;
  options.sequences = kSequences;
  options.context = kContext;
  options.chunk = 5 + any(40);
  options.activations = mode;
  options.cache = cache;
  if (seed % 2 == 1) options.positions = kContext * (kSequences - 1);
  LlmBatch batch = batch_of(model, options);
  std::vector<std::vector<TokenId>> texts(kSequences);
  std::vector<std::vector<Logits>> expected(kSequences);
  for (size_t s = 0; s < texts.size(); ++s) {
    for (int64_t i = 0; i < kContext; ++i)
      texts[s].push_back(static_cast<TokenId>(any(model.config().vocab_size - 1)));
    if (s > 0 && any(1) == 0) std::copy_n(texts[s - 1].begin(), any(kContext), texts[s].begin());
    expected[s] = alone(model, texts[s], kContext, mode, cache);
  }
  for (int step = 0; step < 40; ++step) {
    std::vector<LlmBatch::Piece> pieces;
    int64_t room = batch.rows();
    for (int64_t s = 0; s < kSequences; ++s) {
      between(batch, random, s, texts);
      if (testing::Test::HasFatalFailure()) return;
      const int64_t at = batch.position(s), left = std::min(kContext - at, room);
      if (any(4) == 0 || left == 0) continue;
      const int64_t count = any(2) > 0 ? 1 : 1 + any(left - 1);
      const std::span<const TokenId> text = texts[static_cast<size_t>(s)];
      pieces.push_back(
          {s, text.subspan(static_cast<size_t>(at), static_cast<size_t>(count)), any(5) > 0});
      room -= count;
    }
    std::shuffle(pieces.begin(), pieces.end(), random);
    Status fed = batch.feed(pieces);
    if (!fed.ok() && options.positions > 0) {  // no memory: one releases its own
      ASSERT_EQ(fed.error().code, Code::out_of_range);
      batch.park(any(kSequences - 1));
      continue;
    }
    ASSERT_TRUE(fed.ok()) << fed.error().str();
    for (const LlmBatch::Piece& piece : pieces) {
      const std::span<const float> logits = batch.logits(piece.sequence);
      ASSERT_EQ(logits.empty(), !piece.logits);
      if (!piece.logits) continue;
      const auto last = static_cast<size_t>(batch.position(piece.sequence)) - 1;
      ASSERT_EQ(Logits(logits.begin(), logits.end()),
                expected[static_cast<size_t>(piece.sequence)][last])
          << "sequence " << piece.sequence << " position " << last << " seed " << seed;
    }
  }
}

class BatchOf : public testing::TestWithParam<std::string> {};

TEST_P(BatchOf, EveryDecoderGivesTheBitsOfEachSequenceAlone) {
  const std::string folder = loom_test::source_path("tests/llm/golden/") + GetParam();
  const auto model = load_language_model(folder, LoadModelOptions(), test::pool());
  ASSERT_TRUE(model.ok()) << model.error().str();
  for (uint32_t seed = 0; seed < 4; ++seed) {
    expect_alone(*model, seed % 2 == 0 ? ActivationMode::f32 : ActivationMode::q8, seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, BatchOf,
                         testing::Values("llama", "llama-bitlinear", "mistral", "qwen2", "qwen3",
                                         "gemma", "gemma2", "gemma3", "phi3", "smollm3", "gpt2",
                                         "gpt2-odd", "opt", "gpt-neox", "gpt-neox-serial", "phi",
                                         "starcoder2", "bitnet"),
                         [](const auto& decoder) {
                           std::string name = decoder.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class BatchIn : public testing::TestWithParam<DType> {};

TEST_P(BatchIn, EveryTypeOfWeightsGivesTheBitsOfEachSequenceAlone) {
  const auto model = load_language_model(test::kStories, {GetParam(), {}}, test::pool());
  ASSERT_TRUE(model.ok()) << model.error().str();
  expect_alone(*model, ActivationMode::q8, 7);
}

INSTANTIATE_TEST_SUITE_P(Types, BatchIn,
                         testing::Values(DType::f32, DType::f16, DType::q8_0, DType::q4_0,
                                         DType::i8, DType::ternary, DType::nf4),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

class CacheIn : public testing::TestWithParam<DType> {};

TEST_P(CacheIn, EveryTypeGivesTheBitsOfEachSequenceAlone) {
  expect_alone(test::stories(), ActivationMode::q8, 11, GetParam());
}

// For any split of the prompt, any number of lanes and instruction set; and close to the logits of
// a cache in f32.
TEST_P(CacheIn, GivesTheSameBitsForPiecesLanesAndInstructionSets) {
  const LanguageModel& model = test::stories();
  const std::vector<TokenId> ids =
      test::encode(model, "Once upon a time, there was a little girl named Lily.");
  const std::vector<Logits> exact = alone(model, ids, 64, ActivationMode::q8, DType::f32);
  Logits expected;
  int64_t bytes = 0;
  for (const Isa isa : available_isas()) {
    for (const int lanes : {1, 3}) {
      ThreadPool pool(lanes);
      for (const int64_t chunk : {1, 5, 256}) {
        LlmSessionOptions options;
        options.context = 64;
        options.chunk = chunk;
        options.cache = GetParam();
        Result<LlmSession> session = LlmSession::create(model, cpu_ops(isa), pool, options);
        ASSERT_TRUE(session.ok()) << session.error().str();
        ASSERT_TRUE(session->feed(ids).ok());
        const Logits got(session->logits().begin(), session->logits().end());
        if (expected.empty()) expected = got;
        ASSERT_EQ(got, expected) << isa_name(isa) << ", " << lanes << " lanes, pieces of " << chunk;
        bytes = session->state_bytes();
      }
    }
  }
  float worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::fabs(expected[i] - exact.back()[i]));
  EXPECT_LT(worst, GetParam() == DType::q4_0 ? 1.0f : 0.25f);
  EXPECT_EQ(GetParam() == DType::f32, worst == 0);
  RecordProperty("worst", std::to_string(worst));
  RecordProperty("bytes", std::to_string(bytes));
}

INSTANTIATE_TEST_SUITE_P(Types, CacheIn,
                         testing::Values(DType::f32, DType::f16, DType::bf16, DType::q8_0,
                                         DType::q4_0),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(CachesOfOtherTypes, AreRefusedByName) {
  LlmSessionOptions options;
  options.cache = DType::i8;
  const auto refused = [&](const LanguageModel& model) {
    const auto session = LlmSession::create(model, cpu_ops(best_isa()), test::pool(), options);
    EXPECT_FALSE(session.ok());
    return session.ok() ? std::string() : session.error().str();
  };
  EXPECT_EQ(
      refused(test::stories()),
      "keys and values cannot be kept in int8; choose float32, float16, bfloat16, q8_0 or q4_0");
  options.cache = DType::q8_0;
  const std::string folder = loom_test::source_path("tests/llm/golden/llama");
  const auto narrow = load_language_model(folder, LoadModelOptions(), test::pool());
  ASSERT_TRUE(narrow.ok());
  EXPECT_NE(refused(*narrow).find("which has blocks of 32; choose float16 or bfloat16"),
            std::string::npos);
}

TEST(Batches, RefuseWhatDoesNotFitAndReadNothingOfIt) {
  const LanguageModel& model = test::stories();
  LlmBatchOptions options;
  options.sequences = 2;
  options.context = 8;
  options.chunk = 4;
  LlmBatch batch = batch_of(model, options);
  const std::vector<TokenId> ids = {5, 6, 7, 8, 9, 10, 11, 12, 13};
  const std::span<const TokenId> all(ids);
  const TokenId bad[] = {-1}, far[] = {static_cast<TokenId>(model.config().vocab_size)};
  const std::vector<std::pair<std::vector<LlmBatch::Piece>, std::string>> cases = {
      {{{2, all.first(1)}}, "there is no sequence 2 among 2"},
      {{{-1, all.first(1)}}, "there is no sequence -1 among 2"},
      {{{0, all.first(1)}, {0, all.first(1)}},
       "sequence 0 must read one piece of a pass, of a token or more"},
      {{{1, {}}}, "sequence 1 must read one piece of a pass, of a token or more"},
      {{{0, bad}}, cat("token id -1 is outside the vocabulary of ", model.config().vocab_size)},
      {{{0, far}}, cat("token id ", far[0], " is outside the vocabulary of ", far[0])},
      {{{0, all.first(3)}, {1, all.first(2)}}, "a pass of 5 tokens; this batch was made for 4"},
      {{{0, all.first(1)}, {1, all}},
       "the context is full: 0 positions used, 9 more wanted, 8 available"},
  };
  for (const auto& [pieces, message] : cases) {
    const Status fed = batch.feed(pieces);
    ASSERT_FALSE(fed.ok()) << message;
    EXPECT_EQ(fed.error().str(), message);
    EXPECT_EQ(batch.position(0) + batch.position(1), 0);
  }
  EXPECT_TRUE(batch.feed({}).ok());
  options.sequences = 0;
  EXPECT_FALSE(LlmBatch::create(model, cpu_ops(best_isa()), test::pool(), options).ok());
  options.sequences = 1;
  options.context = 1 << 24;
  EXPECT_FALSE(LlmBatch::create(model, cpu_ops(best_isa()), test::pool(), options).ok());
}

TEST(RaggedSessions, AreRefusedWhereALayerLooksAtOtherRows) {
  GridSpec grid(1, 1, 1, 1);
  Result<LayerConfig> lstm = make_layer(LayerKind::lstm, {{"in", 4}, {"hidden", 4}});
  ASSERT_TRUE(lstm.ok()) << lstm.error().str();
  ASSERT_TRUE(grid.put({0, 0, 0, 0}, {std::move(*lstm), {}}).ok());
  Result<Network> network = Network::finalize(grid, Shape{1, 8, 4});
  ASSERT_TRUE(network.ok()) << network.error().str();
  ASSERT_TRUE(init_params(*network, DType::f32, 1, test::pool()).ok());
  SessionOptions options;
  options.sequences = 2;
  options.ragged = true;
  const Result<Session> session =
      Session::create(*network, cpu_ops(best_isa()), test::pool(), Shape{1, 8, 4}, options);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, Code::unsupported);
  EXPECT_NE(session.error().message.find("LSTM at"), std::string::npos) << session.error().str();
}

TEST(RaggedSessions, RefusePlacesThatThereAreNot) {
  const LanguageModel& model = test::stories();
  SessionOptions options;
  options.sequences = 2;
  options.max_positions = 16;
  options.ragged = true;
  Result<Session> session =
      Session::create(model.network(), cpu_ops(best_isa()), test::pool(), Shape{1, 2}, options);
  ASSERT_TRUE(session.ok()) << session.error().str();
  const std::vector<std::pair<std::vector<RowPosition>, std::string>> cases = {
      {{{1, 15}, {0, 0}}, ""},
      {{{2, 0}}, "position 0 of sequence 2 is not among 16 of 2"},
      {{{-1, 0}}, "position 0 of sequence -1 is not among 16 of 2"},
      {{{0, 16}}, "position 16 of sequence 0 is not among 16 of 2"},
      {{{0, -1}}, "position -1 of sequence 0 is not among 16 of 2"},
      {{{0, 0}, {0, 1}, {0, 2}}, "3 rows are placed; this session was made for 2"},
  };
  for (const auto& [rows, message] : cases) {
    const Status placed = session->set_row_positions(rows);
    EXPECT_EQ(placed.ok() ? "" : placed.error().str(), message);
  }
}

}  // namespace
}  // namespace loom::core
