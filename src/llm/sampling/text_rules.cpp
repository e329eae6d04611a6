#include "llm/sampling/text_rules.hpp"

#include "grammar/gbnf.hpp"
#include "grammar/schemas/json_schema.hpp"
#include "ops/recording/program.hpp"

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

Result<std::shared_ptr<const CompiledRules>> compile_rules(const LanguageModel& model,
                                                           const GenerateOptions& options) {
  const bool holds = !options.grammar.empty() || !options.json_schema.empty();
  const bool bans = !options.sampler.banned_strings.empty();
  if (!holds && !bans) return std::shared_ptr<const CompiledRules>();
  if (!options.grammar.empty() && !options.json_schema.empty())
    return invalid("a grammar and a JSON schema together; give one of them");
  if (model.tokenizer() == nullptr)
    return invalid(
        "a grammar, a schema or banned strings need a tokenizer, and this model has none");
  auto out = std::make_shared<CompiledRules>();
  if (holds) {
    LOOM_ASSIGN(out->grammar, program_of(options));
  }
  out->vocabulary = model.vocabulary(options.special_text);
  if (!bans) return std::shared_ptr<const CompiledRules>(std::move(out));
  grammar::Builder builder;
  const grammar::ExprId root = builder.text_without(options.sampler.banned_strings);
  LOOM_ASSIGN(out->bans, grammar::Program::compile(builder, root));
  out->no_text.resize(out->vocabulary->words());
  for (size_t i = 0; i < out->vocabulary->size(); ++i) {
    if (out->vocabulary->bytes(static_cast<int32_t>(i)).empty())
      out->no_text[i / 64] |= uint64_t{1} << (i % 64);
  }
  return std::shared_ptr<const CompiledRules>(std::move(out));
}

Result<TextRules> TextRules::create(const LanguageModel& model, const GenerateOptions& options) {
  TextRules out;
  out.rules_ = options.rules;
  if (out.rules_ == nullptr) {
    LOOM_ASSIGN(out.rules_, compile_rules(model, options));
  }
  if (out.rules_ == nullptr) return out;
  const CompiledRules& rules = *out.rules_;
  if (model.tokenizer() == nullptr || rules.vocabulary != model.vocabulary(options.special_text))
    return invalid(
        "the rules were compiled for another model or with another special_text; compile them with "
        "the options of the text");
  if (rules.grammar != nullptr) out.grammar_.emplace(rules.grammar, rules.vocabulary);
  if (rules.bans != nullptr) out.bans_.emplace(rules.bans, rules.vocabulary);
  return out;
}

Result<std::span<const uint64_t>> TextRules::allowed(std::span<const TokenId> ends) {
  if (none()) return std::span<const uint64_t>();
  if (grammar_.has_value()) {
    LOOM_ASSIGN(const std::span<const uint64_t> may, grammar_->allowed());
    bits_.assign(may.begin(), may.end());
  } else {
    bits_.assign(rules_->vocabulary->words(), ~uint64_t{0});
  }
  if (bans_.has_value()) {
    LOOM_ASSIGN(const std::span<const uint64_t> may, bans_->allowed());
    for (size_t i = 0; i < bits_.size(); ++i) bits_[i] &= may[i] | rules_->no_text[i];
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
  if (none() || rules_->vocabulary->bytes(id).empty()) return;
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
