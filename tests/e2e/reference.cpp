#include "e2e/reference.hpp"

#include <cmath>

#include "io/files/file.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core::test {
namespace {

std::vector<TokenId> ids_of(const JsonValue* list) {
  std::vector<TokenId> ids;
  if (list == nullptr) return ids;
  for (const JsonValue& id : list->elements())
    ids.push_back(static_cast<TokenId>(id.as_int("reference.json").value()));
  return ids;
}

}  // namespace

Reference read_reference(const std::string& folder) {
  const bool remade = file_exists(folder + "/reference_f32.json");
  const std::string name = remade ? "reference_f32" : "reference";
  Reference reference;
  const Result<std::string> text = read_file(folder + "/" + name + ".json");
  EXPECT_TRUE(text.ok());
  if (!text.ok()) return reference;
  Result<JsonValue> json = parse_json(*text, name + ".json");
  const Result<SafeTensors> tensors = SafeTensors::open(folder + "/" + name + ".safetensors");
  EXPECT_TRUE(json.ok() && tensors.ok());
  if (!json.ok() || !tensors.ok()) return reference;
  for (const JsonValue& entry : json->find("prompts")->elements()) {
    ReferencePrompt prompt;
    prompt.text = entry.find("text")->text();
    prompt.ids = ids_of(entry.find("ids"));
    prompt.greedy_ids = ids_of(entry.find("greedy_ids"));
    prompt.greedy_text = entry.find("greedy_text")->text();
    const std::string tensor = "logits." + std::to_string(reference.prompts.size());
    const SafeTensor* logits = tensors->find(tensor);
    EXPECT_NE(logits, nullptr) << tensor;
    if (logits == nullptr) return reference;
    prompt.logits.resize(static_cast<size_t>(logits->count()));
    const Status read = SafeTensors::to_f32(*logits, 0, logits->count(), prompt.logits.data());
    EXPECT_TRUE(read.ok());
    reference.prompts.push_back(std::move(prompt));
  }
  reference.json = std::move(*json);
  return reference;
}

Engine make_engine(int threads) {
  EngineOptions options;
  options.threads = threads;
  const Result<Engine> engine = Engine::create(options);
  EXPECT_TRUE(engine.ok());
  return *engine;
}

Model load(const std::string& folder, const ModelOptions& options) {
  const Result<Model> model = Model::load(make_engine(), folder, options);
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *model;
}

void expect_same_ids(const Model& model, const Reference& reference) {
  for (const ReferencePrompt& prompt : reference.prompts) {
    const Result<std::vector<TokenId>> ids = model.tokenize(prompt.text);
    ASSERT_TRUE(ids.ok()) << ids.error().str();
    EXPECT_EQ(*ids, prompt.ids) << prompt.text;
  }
}

void expect_close_logits(const Model& model, const Reference& reference, float bound) {
  const auto vocab = static_cast<size_t>(model.info().vocab);
  for (const ReferencePrompt& prompt : reference.prompts) {
    ASSERT_EQ(prompt.logits.size(), prompt.ids.size() * vocab) << prompt.text;
    Result<ModelSession> session = model.session();
    ASSERT_TRUE(session.ok());
    float worst = 0;
    const Status fed =
        session->feed_all(prompt.ids, [&](int64_t at, std::span<const float> logits) -> Status {
          const float* expected = prompt.logits.data() + static_cast<size_t>(at) * vocab;
          for (size_t i = 0; i < vocab; ++i) {
            const float difference = std::fabs(logits[i] - expected[i]);
            worst = difference <= worst ? worst : difference;  // a NaN wins
          }
          return {};
        });
    ASSERT_TRUE(fed.ok()) << fed.error().str();
    EXPECT_LE(worst, bound) << prompt.text;
  }
}

void expect_same_greedy(const Model& model, const Reference& reference) {
  for (const ReferencePrompt& prompt : reference.prompts) {
    Result<ModelSession> session = model.session();
    ASSERT_TRUE(session.ok());
    GenerateOptions options;
    options.max_tokens = static_cast<int64_t>(prompt.greedy_ids.size());
    options.ignore_eos = true;
    const Result<Generation> result = session->generate(prompt.ids, options);
    ASSERT_TRUE(result.ok()) << result.error().str();
    EXPECT_EQ(result->token_ids, prompt.greedy_ids) << prompt.text;
    EXPECT_EQ(result->text, prompt.greedy_text) << prompt.text;
  }
}

}  // namespace loom::core::test
