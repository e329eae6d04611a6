// A checkpoint written by `transformers`, outside of this repository: ids, logits, greedy
// continuations, and perplexity on held-out text per number type. Skipped if it is absent.
#include <cmath>

#include "e2e/reference.hpp"
#include "io/files/file.hpp"
#include "llm/sessions/perplexity.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

const std::string kData = loom_test::source_path("../shared/data");
const std::string kModel = kData + "/models/shakespeare-llama";
const std::string kText = kData + "/tinyshakespeare.txt";

#define SKIP_IF_ABSENT() \
  if (!file_exists(kText)) GTEST_SKIP() << kModel << " is not here"

Model load(const std::string& dtype) {
  ModelOptions options;
  options.dtype = loom::parse_dtype(dtype).value();
  return test::load(kModel, options);
}

TEST(Shakespeare, TokenizesAsInTransformers) {
  SKIP_IF_ABSENT();
  const test::Reference reference = test::read_reference(kModel);
  EXPECT_EQ(reference.prompts.size(), 8u);
  test::expect_same_ids(load("f32"), reference);
}

TEST(Shakespeare, LogitsAreThoseOfTransformers) {
  SKIP_IF_ABSENT();
  test::expect_close_logits(load("f32"), test::read_reference(kModel), 2e-3f);
}

TEST(Shakespeare, GreedyContinuationsAreThoseOfTransformers) {
  SKIP_IF_ABSENT();
  test::expect_same_greedy(load("f32"), test::read_reference(kModel));
}

// The held-out text as ids.
std::vector<TokenId> held_out(const Model& model, const test::Reference& reference) {
  const Result<std::string> text = read_file(kText);
  EXPECT_TRUE(text.ok());
  // The text is ASCII, so a character is a byte.
  const Result<int64_t> start = reference.json.find("held_out_start_char")->as_int("start");
  const std::string rest = text->substr(static_cast<size_t>(*start));
  const std::string first = reference.json.find("held_out_first_chars")->text();
  EXPECT_EQ(rest.substr(0, first.size()), first);
  const Result<std::vector<TokenId>> ids = model.tokenize(rest);
  EXPECT_TRUE(ids.ok());
  return *ids;
}

double perplexity(const std::string& dtype, const test::Reference& reference) {
  const Model model = load(dtype);
  LlmSessionOptions options;
  options.context = 512;
  options.head_rows = 32;
  Result<LlmSession> session = make_session(model, options);
  EXPECT_TRUE(session.ok());
  const Result<Perplexity> measured =
      measure_perplexity(*session, held_out(model, reference), PerplexityOptions());
  EXPECT_TRUE(measured.ok());
  EXPECT_EQ(measured->predictions,
            reference.json.find("held_out_tokens")->as_int("held_out_tokens").value());
  return measured->perplexity;
}

TEST(Shakespeare, PerplexityIsThatOfTransformersInFloat32) {
  SKIP_IF_ABSENT();
  const test::Reference reference = test::read_reference(kModel);
  const double expected = reference.json.find("held_out_ppl_seq512")->as_double("ppl").value();
  EXPECT_NEAR(perplexity("f32", reference), expected, 1e-3 * expected);
}

TEST(Shakespeare, PerplexityStaysCloseInFewerBits) {
  SKIP_IF_ABSENT();
  const test::Reference reference = test::read_reference(kModel);
  const double expected = reference.json.find("held_out_ppl_seq512")->as_double("ppl").value();
  struct Row {
    const char* dtype;
    double bound;
  };
  for (const Row& row : {Row{"q8_0", 0.005}, Row{"int8", 0.005}, Row{"q4_0", 0.10}}) {
    const double measured = perplexity(row.dtype, reference);
    EXPECT_LE(std::fabs(measured / expected - 1), row.bound) << row.dtype << ": " << measured;
  }
}

}  // namespace
}  // namespace loom::core
