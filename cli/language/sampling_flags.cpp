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
  add_draws(verb);
  add_penalties(verb);
  add_rules(verb);
}

void SamplingFlags::add_draws(Command verb) {
  SamplerOptions& s = generate.sampler;
  verb.option("--max-tokens", generate.max_tokens, "Tokens to write at most")
      .range(0, int64_t{1} << 40)
      .show_default();
  verb.option("--temperature", s.temperature, "0: always the most likely token")
      .range(0.0, 1e6)
      .show_default();
  verb.option("--seed", s.seed, "Sampling seed; the same seed gives the same text")
      .range(0, INT64_MAX)
      .show_default();
  verb.option("--top-k", s.top_k, "Draw among the K most likely tokens; 0: all")
      .range(0, INT32_MAX)
      .show_default();
  verb.option("--top-p", s.top_p, "Draw among the fewest tokens that hold this probability")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--min-p", s.min_p, "Leave out tokens below this share of the best one's")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--typical-p", s.typical_p,
              "Draw among the tokens whose surprise is nearest to the entropy, this share of them")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--top-n-sigma", s.top_n_sigma,
              "Draw among logits within N deviations of the largest; 0: all")
      .range(0.0, 1e6)
      .show_default();
  verb.option("--xtc-probability", s.xtc_probability,
              "How often all tokens above --xtc-threshold but the last one are left out")
      .range(0.0, 1.0)
      .show_default();
  verb.option("--xtc-threshold", s.xtc_threshold, "A probability").range(0.0, 1.0).show_default();
  verb.option("--dynamic-range", s.dynamic_range,
              "Temperature moves by this, down and up, with the entropy; 0: it stays")
      .range(0.0, 1e6)
      .show_default();
  verb.option("--dynamic-exponent", s.dynamic_exponent, "Exponent of the entropy").show_default();
  verb.option("--mirostat", s.mirostat, "1, 2: keep the surprise of each token near --mirostat-tau")
      .range(0, 2)
      .show_default();
  verb.option("--mirostat-tau", s.mirostat_tau, "Bits").show_default();
  verb.option("--mirostat-eta", s.mirostat_eta, "How fast it corrects itself").show_default();
}

void SamplingFlags::add_penalties(Command verb) {
  SamplerOptions& s = generate.sampler;
  verb.option("--repetition-penalty", s.repetition_penalty, "Above 1: repeat less").show_default();
  verb.option("--repetition-window", s.repetition_window, "Tokens it looks back at; 0: all")
      .range(0, INT32_MAX)
      .show_default();
  verb.option("--frequency-penalty", s.frequency_penalty,
              "Off the logit of a token for each time it is in the window")
      .show_default();
  verb.option("--presence-penalty", s.presence_penalty, "Flat penalty for any token already used")
      .show_default();
  verb.option("--no-repeat-ngram", s.no_repeat_ngram, "No run of N tokens comes twice; 0: off")
      .range(0, 1 << 20)
      .show_default();
  verb.option("--dry-multiplier", s.dry.multiplier,
              "Penalty for going on with a repetition; 0: off")
      .show_default();
  verb.option("--dry-base", s.dry.base, "It grows by this with each token of the repetition")
      .show_default();
  verb.option("--dry-allowed-length", s.dry.allowed_length, "Shorter ones cost nothing")
      .range(0, INT32_MAX)
      .show_default();
  verb.option("--dry-window", s.dry.window, "Tokens it looks back at; 0: all")
      .range(0, INT32_MAX)
      .show_default();
  verb.option("--dry-breaker", s.dry.breakers,
              "A text over which no repetition reaches (default: line end, colon, quote, asterisk)")
      .one_at_a_time();
  verb.option("--logit-bias", biases, "ID=NUMBER, added to the logit of a token").one_at_a_time();
  verb.option("--ban-token", banned, "Never draw this token").split_at(',');
  verb.option("--ban-string", s.banned_strings, "Never spell this text; may be given several times")
      .one_at_a_time();
}

void SamplingFlags::add_rules(Command verb) {
  verb.option("--stop", generate.stop, "End before this text; may be given several times")
      .one_at_a_time();
  verb.flag("--ignore-eos", generate.ignore_eos, "Go on where the model would end");
  const Option file = verb.option("--grammar", grammar, "Hold the text to a grammar in GBNF");
  verb.option("--json-schema", schema, "Hold the text to a JSON schema").excludes(file);
  verb.option("--lookup", lookup,
              "Guess up to N tokens from what came after the same words before; same text, faster")
      .range(0, 64)
      .show_default();
}

Result<GenerateOptions> SamplingFlags::options(uint64_t text_limit) const {
  GenerateOptions out = generate;
  for (const std::string& text : biases) {
    LOOM_ASSIGN(const TokenBias bias, read_bias(text));
    out.sampler.logit_bias.push_back(bias);
  }
  for (const int64_t id : banned) out.sampler.banned_tokens.push_back(static_cast<TokenId>(id));
  if (!grammar.empty()) {
    LOOM_ASSIGN(out.grammar, read_filled(grammar, text_limit));
  }
  if (!schema.empty()) {
    LOOM_ASSIGN(out.json_schema, read_filled(schema, text_limit));
  }
  const Status rules = check_rules(out);
  if (!rules.ok()) return error_in_file(rules.error(), grammar.empty() ? schema : grammar);
  out.lookup = lookup > 0;
  if (lookup > 0) out.guesses = lookup;
  return out;
}

}  // namespace loom::cli
