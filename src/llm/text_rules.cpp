#include "llm/text_rules.hpp"

#include "grammar/gbnf.hpp"
#include "grammar/json_schema.hpp"
#include "ops/program.hpp"

namespace loom::core {
namespace {

Result<std::shared_ptr<const grammar::Program>> program_of(const GenerateOptions& options) {
  grammar::Builder builder;
  if (!options.grammar.empty()) {
    LOOM_ASSIGN(const grammar::ExprId root, grammar::add_gbnf(builder, options.grammar));
    return grammar::Program::compile(builder, root);
  }
  LOOM_ASSIGN(const JsonValue schema, parse_json(options.json_schema, "json_schema"));
  LOOM_ASSIGN(const grammar::ExprId root, grammar::add_json_schema(builder, schema));
  return grammar::Program::compile(builder, root);
}

}  // namespace

Result<TextRules> TextRules::create(const LanguageModel& model, const GenerateOptions& options) {
  TextRules out;
  const bool holds = !options.grammar.empty() || !options.json_schema.empty();
  const bool bans = !options.sampler.banned_strings.empty();
  if (!holds && !bans) return out;
  if (!options.grammar.empty() && !options.json_schema.empty())
    return invalid("a grammar and a JSON schema together; give one of them");
  if (model.tokenizer() == nullptr)
    return invalid(
        "a grammar, a schema or banned strings need a tokenizer, and this model has none");
  std::shared_ptr<const grammar::Program> program;
  if (holds) {
    LOOM_ASSIGN(program, program_of(options));
  }
  out.vocabulary_ = model.vocabulary(options.special_text);
  if (holds) out.grammar_.emplace(program, out.vocabulary_);
  if (!bans) return out;
  grammar::Builder builder;
  const grammar::ExprId root = builder.text_without(options.sampler.banned_strings);
  LOOM_ASSIGN(program, grammar::Program::compile(builder, root));
  out.bans_.emplace(program, out.vocabulary_);
  out.no_text_.resize(out.vocabulary_->words());
  for (size_t i = 0; i < out.vocabulary_->size(); ++i) {
    if (out.vocabulary_->bytes(static_cast<int32_t>(i)).empty())
      out.no_text_[i / 64] |= uint64_t{1} << (i % 64);
  }
  return out;
}

Result<std::span<const uint64_t>> TextRules::allowed(std::span<const TokenId> ends) {
  if (none()) return std::span<const uint64_t>();
  if (grammar_.has_value()) {
    LOOM_ASSIGN(const std::span<const uint64_t> may, grammar_->allowed());
    bits_.assign(may.begin(), may.end());
  } else {
    bits_.assign(vocabulary_->words(), ~uint64_t{0});
  }
  if (bans_.has_value()) {
    LOOM_ASSIGN(const std::span<const uint64_t> may, bans_->allowed());
    for (size_t i = 0; i < bits_.size(); ++i) bits_[i] &= may[i] | no_text_[i];
  }
  for (const TokenId id : ends) {
    const auto i = static_cast<size_t>(id);
    if (id < 0 || i / 64 >= bits_.size()) continue;
    const uint64_t bit = uint64_t{1} << (i % 64);
    if (!grammar_.has_value() || grammar_->may_end()) bits_[i / 64] |= bit;
  }
  return std::span<const uint64_t>(bits_);
}

void TextRules::accept(TokenId id) {
  if (none() || vocabulary_->bytes(id).empty()) return;
  if (grammar_.has_value()) grammar_->accept(id);
  if (bans_.has_value()) bans_->accept(id);
}

}  // namespace loom::core

namespace loom {

Status check_rules(const GenerateOptions& options) {
  if (options.grammar.empty() && options.json_schema.empty()) return {};
  LOOM_TRY(core::program_of(options));
  return {};
}

}  // namespace loom
