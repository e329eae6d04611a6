// Decoders of every form compared with a literal reference. Forms: LayerNorm or RMSNorm; learned or
// rotary positions (or of a part of a head); MLPs with and without a gate; serial and parallel
// residuals; optional biases. Also the limits of learned positions.
#include "llm/decoder_forms.hpp"

#include "base/text.hpp"
#include "llm/sessions/llm_batch.hpp"

namespace loom::core {
namespace {

LanguageModel model_of(const ModelSource& source) {
  Result<LanguageModel> model = LanguageModel::load(source, {DType::f32, {}}, test::pool());
  EXPECT_TRUE(model.ok()) << model.error().str();
  return std::move(*model);
}

// After every token, fed `piece` at a time.
std::vector<std::vector<float>> logits_of(const LanguageModel& model, const Ops& ops,
                                          std::span<const TokenId> ids, size_t piece) {
  LlmSessionOptions options;
  options.activations = ActivationMode::f32;
  Result<LlmSession> session = LlmSession::create(model, ops, test::pool(), options);
  EXPECT_TRUE(session.ok()) << session.error().str();
  std::vector<std::vector<float>> all;
  for (size_t at = 0; at < ids.size(); at += piece) {
    const auto sink = [&](int64_t, std::span<const float> logits) -> Status {
      all.emplace_back(logits.begin(), logits.end());
      return {};
    };
    const Status fed = session->feed_all(ids.subspan(at, std::min(piece, ids.size() - at)), sink);
    EXPECT_TRUE(fed.ok()) << fed.error().str();
  }
  return all;
}

TEST(DecoderForms, ComputeWhatALiteralEvaluatorDoes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const DecoderConfig config = test::random_form(seed);
    const test::FormSource source(config, seed);
    const LanguageModel model = model_of(source);
    const std::vector<TokenId> ids = test::random_ids(config, seed, 10);
    const std::vector<test::Row> want = test::LiteralDecoder(source).logits(ids);
    const auto got = logits_of(model, cpu_ops(best_isa()), ids, ids.size());
    ASSERT_EQ(got.size(), want.size());
    double worst = 0, largest = 1;
    for (size_t t = 0; t < want.size(); ++t) {
      ASSERT_EQ(got[t].size(), want[t].size());
      for (size_t i = 0; i < want[t].size(); ++i) {
        worst = std::max(worst, std::fabs(static_cast<double>(got[t][i]) - want[t][i]));
        largest = std::max(largest, std::fabs(want[t][i]));
      }
    }
    ASSERT_LE(worst, 2e-5 * largest) << "seed " << seed;
  }
}

TEST(DecoderForms, GiveTheSameBitsForPiecesAndInstructionSets) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const DecoderConfig config = test::random_form(seed);
    const test::FormSource source(config, seed);
    const LanguageModel model = model_of(source);
    const std::vector<TokenId> ids = test::random_ids(config, seed, config.max_positions);
    const auto whole = logits_of(model, cpu_ops(best_isa()), ids, ids.size());
    for (const Isa isa : available_isas()) {
      for (const size_t piece : {size_t{1}, size_t{5}, ids.size()})
        ASSERT_EQ(logits_of(model, cpu_ops(isa), ids, piece), whole)
            << "seed " << seed << ", " << isa_name(isa) << ", pieces of " << piece;
    }
  }
}

TEST(DecoderForms, GiveTheBitsOfEachSequenceAloneInSharedPasses) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DecoderConfig config = test::random_form(seed);
    const test::FormSource source(config, seed);
    const LanguageModel model = model_of(source);
    LlmBatchOptions options;
    options.sequences = 3;
    options.context = config.max_positions;
    options.activations = ActivationMode::f32;
    Result<LlmBatch> batch = LlmBatch::create(model, cpu_ops(best_isa()), test::pool(), options);
    ASSERT_TRUE(batch.ok()) << batch.error().str();
    std::vector<std::vector<TokenId>> texts;
    std::vector<std::vector<std::vector<float>>> expected;
    for (uint64_t s = 0; s < 3; ++s) {
      texts.push_back(test::random_ids(config, 3 * seed + s, config.max_positions));
      expected.push_back(logits_of(model, cpu_ops(best_isa()), texts[s], texts[s].size()));
    }
    // Sequence s reads s + 1 tokens a pass, so that all have different positions.
    for (bool more = true; more;) {
      std::vector<LlmBatch::Piece> pieces;
      for (int64_t s = 0; s < 3; ++s) {
        const int64_t at = batch->position(s);
        const int64_t count = std::min(s + 1, config.max_positions - at);
        if (count == 0) continue;
        const std::span<const TokenId> text = texts[static_cast<size_t>(s)];
        pieces.push_back(
            {s, text.subspan(static_cast<size_t>(at), static_cast<size_t>(count)), true});
      }
      more = !pieces.empty();
      ASSERT_TRUE(batch->feed(pieces).ok());
      for (const LlmBatch::Piece& piece : pieces) {
        const std::span<const float> got = batch->logits(piece.sequence);
        const auto last = static_cast<size_t>(batch->position(piece.sequence)) - 1;
        ASSERT_EQ(std::vector<float>(got.begin(), got.end()),
                  expected[static_cast<size_t>(piece.sequence)][last])
            << "seed " << seed << ", sequence " << piece.sequence << ", position " << last;
      }
    }
  }
}

DecoderConfig learned_form(int64_t positions) {
  DecoderConfig c = shape_config("tiny").value();
  c.rope = RopeKind::none;
  c.layer_norms = true;
  c.gated_mlp = false;
  c.hidden_act = "gelu_new";
  c.max_positions = c.learned_positions = positions;
  return c;
}

TEST(LearnedPositions, EndWhereTheirTableDoes) {
  const test::FormSource source(learned_form(21), 5);
  const LanguageModel model = model_of(source);
  LlmSessionOptions options;
  options.context = 22;
  const auto longer = LlmSession::create(model, cpu_ops(best_isa()), test::pool(), options);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().str(),
            "a context of 22 positions was asked for; this model was made for 21");
  LlmSession session = test::session(model);
  EXPECT_EQ(session.context(), 21);
  const std::vector<TokenId> ids = test::random_ids(model.config(), 1, 22);
  ASSERT_TRUE(session.feed(std::span(ids).first(21)).ok());
  const Status fed = session.feed(std::span(ids).last(1));
  ASSERT_FALSE(fed.ok());
  EXPECT_EQ(fed.error().str(),
            "the context is full: 21 positions used, 1 more wanted, 21 available");
}

// Memory of sessions is in whole pages; nothing after the end of the table may be read.
TEST(LearnedPositions, RefuseWhatASessionHasRoomForButTheTableHasNot) {
  const test::FormSource source(learned_form(21), 5);
  const LanguageModel model = model_of(source);
  std::vector<int32_t> ids(24, 3);
  const auto input = [&](int64_t count) {
    Tensor t;
    t.dtype = DType::i32;
    t.shape = Shape{1, count};
    t.row_stride = count;
    t.data = reinterpret_cast<std::byte*>(ids.data());
    return t;
  };
  SessionOptions options;
  options.max_positions = 64;
  Result<Session> plain =
      Session::create(model.network(), cpu_ops(best_isa()), test::pool(), Shape{1, 20}, options);
  ASSERT_TRUE(plain.ok()) << plain.error().str();
  ASSERT_TRUE(plain->forward(input(20), 0, model.body_cells()).ok());
  plain->advance(20);
  ASSERT_TRUE(plain->forward(input(1), 0, model.body_cells()).ok());
  const auto beyond = plain->forward(input(2), 0, model.body_cells());
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().str(),
            "position 21 of a sequence is not among the 21 that the model has learned");
  const auto longer =
      Session::create(model.network(), cpu_ops(best_isa()), test::pool(), Shape{1, 22}, options);
  ASSERT_FALSE(longer.ok());
  EXPECT_EQ(longer.error().str(),
            "position 21 of a sequence is not among the 21 that the model has learned");
  options.ragged = true;
  Result<Session> ragged =
      Session::create(model.network(), cpu_ops(best_isa()), test::pool(), Shape{1, 2}, options);
  ASSERT_TRUE(ragged.ok()) << ragged.error().str();
  const RowPosition row_positions[] = {{0, 20}, {0, 21}};
  EXPECT_TRUE(ragged->set_row_positions(std::span(row_positions).first(1)).ok());
  const Status placed = ragged->set_row_positions(row_positions);
  ASSERT_FALSE(placed.ok());
  EXPECT_EQ(placed.error().str(), "position 21 of sequence 0 is not among 21 of 1");
}

// A full context that continues reads what it keeps again, so its positions restart too.
TEST(LearnedPositions, OfAContextThatWentOnAreThoseOfATextWithoutWhatWasForgotten) {
  const test::FormSource source(learned_form(16), 9);
  const LanguageModel model = model_of(source);
  LlmSession session = test::session(model);
  const std::vector<TokenId> prompt = test::random_ids(model.config(), 2, 10);
  GenerateOptions options;
  options.sampler.temperature = 0;
  options.max_tokens = 15;
  options.ignore_eos = true;
  options.shift_context = true;
  options.keep_tokens = 2;
  options.shift_tokens = 6;
  const Result<Generation> made = generate(session, model, prompt, options, {});
  ASSERT_TRUE(made.ok()) << made.error().str();
  ASSERT_EQ(made->token_ids.size(), 15u);
  EXPECT_GT(made->forgotten_tokens, 0);
  const std::vector<TokenId> kept(session.fed().begin(), session.fed().end());
  const std::vector<float> logits(session.logits().begin(), session.logits().end());
  LlmSession fresh = test::session(model);
  ASSERT_TRUE(fresh.feed(kept).ok());
  EXPECT_EQ(std::vector<float>(fresh.logits().begin(), fresh.logits().end()), logits);
}

TEST(DecoderForms, AreRefusedWhereNoNetworkHasThem) {
  DecoderConfig c = learned_form(8);
  c.post_norms = true;
  EXPECT_EQ(decoder_grid(c).error().str(),
            "a decoder with norms after attention and MLP has RMSNorms there");
  c = learned_form(8);
  c.residual = ResidualKind::parallel;
  c.residual_scale = 0.5;
  EXPECT_EQ(
      decoder_grid(c).error().str(),
      "a decoder with parallel attention and MLP has norms before them and no residual scale");
  c = learned_form(8);
  c.sub_norms = true;
  c.gated_mlp = false;
  EXPECT_EQ(decoder_grid(c).error().str(),
            "a decoder with norms before the last projections has an MLP with a gate");
}

}  // namespace
}  // namespace loom::core
