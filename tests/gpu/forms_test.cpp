// Decoders of every form on the GPU, against the literal evaluator: LayerNorm, learned positions,
// plain MLPs, parallel residuals. A prompt in one pass, then single tokens.
#include "gpu/support.hpp"
#include "llm/decoder_forms.hpp"

namespace loom::core::test {
namespace {

TEST(GpuDecoderForms, ComputeWhatALiteralEvaluatorDoes) {
  LOOM_NEEDS_GPU();
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const DecoderConfig config = random_form(seed);
    const FormSource source(config, seed);
    Result<LanguageModel> model = LanguageModel::load(source, {DType::f32, {}}, threads());
    ASSERT_TRUE(model.ok()) << model.error().str();
    LlmSessionOptions options;
    options.activations = ActivationMode::f32;
    Result<LlmSession> session = LlmSession::create(*model, gpu()->ops(), threads(), options);
    ASSERT_TRUE(session.ok()) << session.error().str();
    const std::vector<TokenId> ids = random_ids(config, seed, 10);
    const std::vector<Row> want = LiteralDecoder(source).logits(ids);
    constexpr size_t kPrompt = 7;
    for (size_t at = 0; at < ids.size(); at = at < kPrompt ? kPrompt : at + 1) {
      const size_t count = at < kPrompt ? kPrompt : 1;
      const Status fed = session->feed(std::span(ids).subspan(at, count));
      ASSERT_TRUE(fed.ok()) << fed.error().str();
      const std::span<const float> got = session->logits();
      const Row& last = want[at + count - 1];
      ASSERT_EQ(got.size(), last.size());
      double largest = 1;
      for (const double v : last) largest = std::max(largest, std::fabs(v));
      for (size_t i = 0; i < last.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(got[i]), last[i], 2e-5 * largest)
            << "seed " << seed << ", token " << at + count - 1;
      }
    }
  }
}

}  // namespace
}  // namespace loom::core::test
