// Separate from the sources, so that code without text needs no tokenizer (tests/golden).
#include "llm/model_source.hpp"

namespace loom::core {

Result<std::optional<TokenizerSpec>> tokenizer_spec(const ModelSource& source) {
  if (source.tokenizer || source.tokenizer_json.empty()) return source.tokenizer;
  LOOM_ASSIGN(TokenizerSpec spec,
              parse_tokenizer_json(source.tokenizer_json, source.tokenizer_where));
  return std::optional<TokenizerSpec>(std::move(spec));
}

std::string tokenizer_text(const ModelSource& source) {
  return source.tokenizer ? core::tokenizer_json(*source.tokenizer) : source.tokenizer_json;
}

}  // namespace loom::core
