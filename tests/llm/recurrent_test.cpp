// Sessions of decoders with recurrent states: chunks of any size, shared passes, rewinding, copies
// and files give the bits of a text that is read once. Memory does not depend on the context.
#include <random>

#include "llm/decoder_forms.hpp"
#include "llm/sessions/llm_batch.hpp"

namespace loom::core {
namespace {

using Logits = std::vector<float>;

enum class Form { scan, heads, conv, hybrid };

DecoderConfig form_of(Form form) {
  DecoderConfig c = shape_config("tiny").value();
  c.num_layers = 3;
  c.hidden_size = 24;
  c.intermediate_size = 20;
  c.vocab_size = 60;
  c.num_heads = 4, c.num_kv_heads = 2, c.head_dim = 6;
  c.layers.resize(3);
  for (DecoderLayer& layer : c.layers) {
    layer.mixer = form == Form::conv ? BlockMixer::conv : BlockMixer::scan;
    layer.mlp = form == Form::hybrid;
  }
  if (form == Form::hybrid) c.layers[1].mixer = BlockMixer::attention;
  c.scan.inner = 36;
  c.scan.state = 5;
  if (form == Form::heads) c.scan.heads = 6, c.scan.groups = 2, c.scan.norm = "gated";
  return c;
}

class RecurrentSession : public ::testing::TestWithParam<Form> {
 protected:
  RecurrentSession() : source_(form_of(GetParam()), 3), model_(load()), ids_(random_text(70)) {
    LlmSession session = this->session();
    const auto sink = [&](int64_t, std::span<const float> row) -> Status {
      expected_.emplace_back(row.begin(), row.end());
      return {};
    };
    EXPECT_TRUE(session.feed_all(ids_, sink).ok());
  }

  LanguageModel load() const {
    Result<LanguageModel> model = LanguageModel::load(source_, {DType::f32, {}}, test::pool());
    EXPECT_TRUE(model.ok()) << model.error().str();
    return std::move(*model);
  }
  std::vector<TokenId> random_text(int64_t count) const {
    return test::random_ids(source_.config, 5, count);
  }
  LlmSession session(int64_t context = 100, int64_t chunk = 16) const {
    LlmSessionOptions options;
    options.context = context;
    options.chunk = chunk;
    return test::session(model_, options);
  }
  LlmBatch batch(int64_t sequences) const {
    LlmBatchOptions options;
    options.sequences = sequences;
    options.context = 100;
    options.chunk = 24;
    options.guesses = 2;
    Result<LlmBatch> made = LlmBatch::create(model_, cpu_ops(best_isa()), test::pool(), options);
    EXPECT_TRUE(made.ok()) << made.error().str();
    return std::move(*made);
  }
  std::span<const TokenId> text(int64_t from, int64_t count) const {
    return std::span(ids_).subspan(static_cast<size_t>(from), static_cast<size_t>(count));
  }
  // The logits after `position` tokens.
  void expect_at(std::span<const float> got, int64_t position) const {
    ASSERT_EQ(Logits(got.begin(), got.end()), expected_[static_cast<size_t>(position) - 1])
        << "after " << position << " tokens";
  }

  test::FormSource source_;
  LanguageModel model_;
  std::vector<TokenId> ids_;
  std::vector<Logits> expected_;
};

TEST_P(RecurrentSession, ReadsPiecesOfAnySizeAfterAnyRewindWithTheSameBits) {
  std::mt19937 random(7);
  LlmSession session = this->session();
  for (int step = 0; step < 120; ++step) {
    if (random() % 3 == 0 || session.position() == 70)
      session.rewind(
          static_cast<int64_t>(random() % static_cast<uint64_t>(session.position() + 1)));
    const int64_t at = session.position();
    const int64_t left = 70 - at;
    if (left == 0) continue;
    const int64_t count = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(left));
    ASSERT_TRUE(session.feed(text(at, random() % 2 == 0 ? 1 : count)).ok());
    expect_at(session.logits(), session.position());
  }
  EXPECT_GT(session.read_again(), 0);
}

TEST_P(RecurrentSession, ReadsTheLastPassAloneAgainAfterAShortRewind) {
  LlmSession session = this->session();
  ASSERT_TRUE(session.feed(text(0, 60)).ok());
  ASSERT_TRUE(session.feed(text(60, 5)).ok());
  session.rewind(63);
  ASSERT_TRUE(session.feed(text(63, 1)).ok());
  EXPECT_EQ(session.read_again(), 3);
  expect_at(session.logits(), 64);
  session.rewind(10);
  ASSERT_TRUE(session.feed(text(10, 1)).ok());
  EXPECT_EQ(session.read_again(), 13);
  expect_at(session.logits(), 11);
}

TEST_P(RecurrentSession, SharesPassesWithOthersThatRewindAndCopyAndReuse) {
  std::mt19937 random(11);
  LlmBatch batch = this->batch(3);
  for (int step = 0; step < 150; ++step) {
    const auto s = static_cast<int64_t>(random() % 3);
    const auto read = static_cast<uint64_t>(batch.position(s));
    switch (random() % 8) {
      case 0: batch.rewind(s, static_cast<int64_t>(random() % (read + 1))); break;
      case 1: batch.fork((s + 1) % 3, s); break;
      case 2: batch.reuse(s, text(0, static_cast<int64_t>(random() % 70))); break;
      case 3: batch.park(s); break;
      default: break;
    }
    std::vector<LlmBatch::Piece> pieces;
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t at = batch.position(i);
      const int64_t count = std::min<int64_t>(70 - at, 1 + static_cast<int64_t>(random() % 7));
      if (count == 0 || random() % 4 == 0) continue;
      pieces.push_back({i, text(at, count), std::min<int64_t>(count, 3)});
    }
    const Status fed = batch.feed(pieces);
    ASSERT_TRUE(fed.ok()) << fed.error().str();
    for (const LlmBatch::Piece& piece : pieces) {
      const int64_t end = batch.position(piece.sequence);
      for (int64_t i = 0; i < piece.logits; ++i)
        expect_at(batch.logits_at(piece.sequence, end - 1 - i), end - i);
    }
  }
}

TEST_P(RecurrentSession, ContinuesFromAFileInASessionAndInABatch) {
  LlmSession session = this->session();
  ASSERT_TRUE(session.feed(text(0, 30)).ok());
  ASSERT_TRUE(session.feed(text(30, 10)).ok());
  session.rewind(33);  // the states have read 30 tokens
  std::string file;
  ASSERT_TRUE(session.save_state(FileRef::into("state", file)).ok());
  const FileRef saved = FileRef::of_bytes("state", std::as_bytes(std::span(file)));
  LlmSession other = this->session(90, 7);
  ASSERT_TRUE(other.feed(text(3, 20)).ok());
  const Status loaded = other.load_state(saved);
  ASSERT_TRUE(loaded.ok()) << loaded.error().str();
  ASSERT_TRUE(other.feed(text(33, 8)).ok());
  expect_at(other.logits(), 41);
  LlmBatch batch = this->batch(2);
  ASSERT_TRUE(batch.load_state(1, saved).ok());
  const LlmBatch::Piece pieces[] = {{1, text(33, 9)}, {0, text(0, 4)}};
  ASSERT_TRUE(batch.feed(pieces).ok());
  expect_at(batch.logits(1), 42);
  expect_at(batch.logits(0), 4);
  // No damaged byte is read.
  for (size_t i = 0; i < file.size(); i += 97) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_FALSE(
        other.load_state(FileRef::of_bytes("state", std::as_bytes(std::span(damaged)))).ok());
  }
  ASSERT_TRUE(other.feed(text(41, 1)).ok());
  expect_at(other.logits(), 42);
}

INSTANTIATE_TEST_SUITE_P(Forms, RecurrentSession,
                         ::testing::Values(Form::scan, Form::heads, Form::conv, Form::hybrid));

// A session of 100,000 positions has the memory of one of 100, but for the list of tokens.
TEST(RecurrentMemory, DoesNotDependOnTheContext) {
  DecoderConfig config = form_of(Form::scan);
  config.num_layers = 1;
  config.layers.resize(1);
  config.max_positions = 100000;
  const test::FormSource source(config, 3);
  const auto model = LanguageModel::load(source, {DType::f32, {}}, test::pool());
  ASSERT_TRUE(model.ok()) << model.error().str();
  LlmSessionOptions options;
  options.context = 100;
  const LlmSession small = test::session(*model, options);
  options.context = 100000;
  LlmSession session = test::session(*model, options);
  EXPECT_EQ(session.state_bytes() - small.state_bytes(), (256 - 100) * (2 + 3) * 4);
  const std::vector<TokenId> ids = test::random_ids(config, 1, 256);
  const int64_t before = session.arena_bytes() + session.state_bytes();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(session.feed(ids).ok());
  EXPECT_EQ(session.position(), 40 * 256);
  EXPECT_EQ(session.arena_bytes() + session.state_bytes(), before);
}

}  // namespace
}  // namespace loom::core
