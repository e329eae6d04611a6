#include "sampling_flags.hpp"

#include <fmt/core.h>

#include <cstdlib>

namespace loom::cli {
namespace {

Result<TokenBias> read_bias(const std::string& text) {
  const size_t equals = text.find('=');
  char* end = nullptr;
  const long id = std::strtol(text.c_str(), &end, 10);
  const bool has_id = equals != std::string::npos && equals > 0 && end == text.c_str() + equals;
  const float bias = has_id ? std::strtof(text.c_str() + equals + 1, &end) : 0.0f;
  if (!has_id || *end != 0 || equals + 1 == text.size()) {
    return Error{Code::invalid_argument,
                 fmt::format("--logit-bias takes ID=NUMBER; got {}", printable(text, 60)),
                 {},
                 -1};
  }
  return TokenBias{static_cast<TokenId>(id), bias};
}

}  // namespace

void SamplingFlags::add(Command verb) {
  text.add(verb, list_options(GenerateOptions{}), {});
  sampler.add(verb, list_options(SamplerOptions{}), {});
  add_tokens(verb.group("Penalties"));
  add_rules(verb.group("Text"));
}

// Lists of tokens have no text of the description.
void SamplingFlags::add_tokens(Command verb) {
  verb.option("--logit-bias", biases, "ID=NUMBER, added to the logit of a token").one_at_a_time();
  verb.option("--ban-token", banned, "Never draw this token").split_at(',');
}

void SamplingFlags::add_rules(Command verb) {
  const Option file = verb.option("--grammar", grammar, "File with a grammar in GBNF for the text");
  verb.option("--json-schema", schema, "JSON schema for the text: a file, or the schema itself")
      .excludes(file);
  verb.option("--lookup", lookup,
              "Guess up to N tokens from what came after the same words before; same text, faster")
      .range(0, 64)
      .show_default();
}

bool SamplingFlags::only_length() const {
  const std::vector<std::string> flags = text.given();
  const bool length = flags.empty() || (flags.size() == 1 && flags[0] == "max-tokens");
  return length && sampler.given().empty() && biases.empty() && banned.empty() && grammar.empty() &&
         schema.empty() && lookup == 0;
}

Result<GenerateOptions> SamplingFlags::options(uint64_t text_limit) const {
  GenerateOptions out;
  LOOM_TRY(text.read(out));
  LOOM_TRY(sampler.read(out.sampler));
  for (const std::string& row : biases) {
    LOOM_ASSIGN(const TokenBias bias, read_bias(row));
    out.sampler.logit_bias.push_back(bias);
  }
  for (const int64_t id : banned) out.sampler.banned_tokens.push_back(static_cast<TokenId>(id));
  if (!grammar.empty()) {
    LOOM_ASSIGN(out.grammar, read_filled(grammar, text_limit));
  }
  // A schema on the line is an object.
  const bool on_line = schema.starts_with("{");
  if (on_line) {
    out.json_schema = schema;
  } else if (!schema.empty()) {
    LOOM_ASSIGN(out.json_schema, read_filled(schema, text_limit));
  }
  const Status rules = check_rules(out);
  if (!rules.ok() && on_line) {
    return Error{Code::invalid_argument, "--json-schema: " + rules.error().str(), {}, -1};
  }
  if (!rules.ok()) return error_in_file(rules.error(), grammar.empty() ? schema : grammar);
  out.lookup = lookup > 0;
  if (lookup > 0) out.guesses = lookup;
  return out;
}

}  // namespace loom::cli
