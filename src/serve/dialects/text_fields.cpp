#include "serve/dialects/text_fields.hpp"

#include <cmath>
#include <limits>

namespace loom::core {

Status take_max_tokens(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_int(value, name, -1, INT32_MAX, to.max_tokens);
}

Status take_option(const JsonValue& value, std::string_view name, std::string_view option,
                   TextRequest& to) {
  if (!value.is_number()) return invalid(cat(name, " must be a number; got ", value.describe()));
  const double number = value.as_double(name).value_or(0.5);
  const bool whole = std::floor(number) == number && std::fabs(number) < 9e15;
  // 12.0 is 12, as some clients send it.
  const std::string text = whole ? cat(static_cast<int64_t>(number)) : dump_json(value);
  const Status set = set_option(to.options.sampler, option, text);
  if (set.ok()) return {};
  // The message begins with the name of the option.
  return invalid(cat(name, std::string_view(set.error().message).substr(option.size())));
}

Status take_top_p(const JsonValue& value, std::string_view name, TextRequest& to) {
  float& p = to.options.sampler.top_p;
  LOOM_TRY(take_real(value, name, 0, 1, p));
  p = std::max(p, std::numeric_limits<float>::min());
  return {};
}

Status take_top_k(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t& k = to.options.sampler.top_k;
  LOOM_TRY(take_int(value, name, -1, INT32_MAX, k));
  k = std::max<int64_t>(k, 0);
  return {};
}

Status take_window(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t window = 0;
  LOOM_TRY(take_int(value, name, -1, INT32_MAX, window));
  to.no_repetition_penalty = window == 0;
  to.options.sampler.repetition_window = std::max<int64_t>(window, 0);
  return {};
}

Status take_seed(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t seed = 0;
  LOOM_TRY(take_int(value, name, -1, INT64_MAX, seed));
  to.has_seed = seed >= 0;
  if (to.has_seed) to.options.sampler.seed = static_cast<uint64_t>(seed);
  return {};
}

Status take_stop(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_texts(value, name, 16, to.options.stop);
}

Status take_stream(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.stream);
}

Status take_progress(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.return_progress);
}

Status take_context_shift(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.options.shift_context);
}

Status take_keep(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_int(value, name, -1, INT32_MAX, to.keep);
}

Status take_discard(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_int(value, name, 0, INT32_MAX, to.options.shift_tokens);
}

Status take_guesses(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_int(value, name, 0, INT32_MAX, to.guesses);
}

Status take_guess_chance(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_real(value, name, 0, 1, to.options.guess_chance);
}

Status take_resumable(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.resumable);
}

Status take_cache_salt(const JsonValue& value, std::string_view name, TextRequest& to) {
  constexpr size_t kMax = 1024;
  LOOM_TRY(take_text(value, name, to.cache_salt));
  if (!to.cache_salt.empty() && to.cache_salt.size() <= kMax) return {};
  return invalid(cat(name, " must be a text of 1 to ", kMax, " bytes; leave it out for none"));
}

// Only text replies are supported.
Status take_modalities(const JsonValue& value, std::string_view name, TextRequest&) {
  std::vector<std::string> all;
  LOOM_TRY(take_texts(value, name, 8, all));
  for (const std::string& one : all) {
    if (one != "text")
      return unsupported(cat(name, " may be [\"text\"]; got \"", printable(one), "\""));
  }
  return {};
}

Status take_verbosity(const JsonValue& value, std::string_view name, TextRequest&) {
  if (value.is_null() || value.text() == "medium") return {};
  return unsupported(cat(name, " may be \"medium\"; got ", value.describe(),
                         "; say in a message how long replies may be"));
}

Status take_timings(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.timings_per_token);
}

Status take_ignore_eos(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_bool(value, name, to.options.ignore_eos);
}

Status take_typical(const JsonValue& value, std::string_view name, TextRequest& to) {
  float& p = to.options.sampler.typical_p;
  LOOM_TRY(take_real(value, name, 0, 1, p));
  p = std::max(p, std::numeric_limits<float>::min());
  return {};
}

Status take_sigma(const JsonValue& value, std::string_view name, TextRequest& to) {
  float& n = to.options.sampler.top_n_sigma;
  LOOM_TRY(take_real(value, name, -1, 1e6, n));
  n = std::max(n, 0.0f);
  return {};
}

Status take_dry_window(const JsonValue& value, std::string_view name, TextRequest& to) {
  int64_t window = 0;
  LOOM_TRY(take_int(value, name, -1, INT32_MAX, window));
  if (window == 0) to.options.sampler.dry.multiplier = 0.0f;
  to.options.sampler.dry.window = std::max<int64_t>(window, 0);
  return {};
}

Status take_dry_breakers(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_texts(value, name, 64, to.options.sampler.dry.breakers);
}

namespace {

Status add_bias(const JsonValue& id, const JsonValue& bias, std::string_view name,
                TextRequest& to) {
  SamplerOptions& s = to.options.sampler;
  int64_t token = 0;
  if (id.is_string()) {
    float amount = -100;
    const bool never = bias.is_bool() && !bias.as_bool(name).value_or(true);
    if (!never) LOOM_TRY(take_real(bias, cat(name, " of a text"), -1000, 1000, amount));
    to.bias_texts.emplace_back(id.text(), amount);
    return {};
  }
  LOOM_TRY(take_int(id, cat("a token of ", name), 0, INT32_MAX, token));
  if (bias.is_bool() && !bias.as_bool(name).value_or(true)) {
    s.banned_tokens.push_back(static_cast<TokenId>(token));
    return {};
  }
  TokenBias one{static_cast<TokenId>(token), 0.0f};
  LOOM_TRY(take_real(bias, cat(name, " of token ", token), -1000, 1000, one.bias));
  // The value that clients send for "never".
  if (one.bias <= -100.0f) {
    s.banned_tokens.push_back(one.id);
  } else {
    s.logit_bias.push_back(one);
  }
  return {};
}

}  // namespace

Status take_logit_bias(const JsonValue& value, std::string_view name, TextRequest& to) {
  constexpr size_t kMaxBiases = 4096;
  if (value.members().size() + value.elements().size() > kMaxBiases)
    return invalid(cat(name, " may hold ", kMaxBiases, " tokens"));
  for (const JsonValue::Member& m : value.members()) {
    const bool number = !m.first.empty() && m.first.size() < 10 &&
                        m.first.find_first_not_of("0123456789") == std::string::npos;
    LOOM_TRY(add_bias(number ? JsonValue::integer(std::stoll(m.first)) : JsonValue::string(m.first),
                      m.second, name, to));
  }
  for (const JsonValue& pair : value.elements()) {
    if (pair.elements().size() != 2)
      return invalid(cat(name, " is a list of [token, bias]; got ", pair.describe()));
    LOOM_TRY(add_bias(pair.elements()[0], pair.elements()[1], name, to));
  }
  return {};
}

Status take_grammar(const JsonValue& value, std::string_view name, TextRequest& to) {
  return take_text(value, name, to.options.grammar);
}

Status take_schema(const JsonValue& value, std::string_view name, TextRequest& to) {
  if (!value.is_object() && !value.is_bool())
    return invalid(cat(name, " must be a JSON schema; got ", value.describe()));
  to.options.json_schema = dump_json(value);
  return {};
}

namespace {

// Quotes a text for GBNF.
std::string grammar_literal(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 32) {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

Status take_choices(const JsonValue& value, std::string_view name, TextRequest& to) {
  std::vector<std::string> texts;
  LOOM_TRY(take_texts(value, name, 1024, texts));
  if (texts.empty()) return invalid(cat(name, " must be a list of texts; got ", value.describe()));
  std::string& grammar = to.options.grammar;
  for (const std::string& text : texts)
    grammar += cat(grammar.empty() ? "root ::= " : " | ", grammar_literal(text));
  return {};
}

Status take_structured(const JsonValue& value, std::string_view name, TextRequest& to) {
  if (!value.is_object()) return invalid(cat(name, " must be an object; got ", value.describe()));
  for (const auto& [key, one] : value.members()) {
    const std::string called = cat(name, ".", key);
    if (one.is_null()) continue;
    if (key == "json" && one.is_string()) {
      LOOM_ASSIGN(const JsonValue schema, parse_json(one.text(), called));
      LOOM_TRY(take_schema(schema, called, to));
    } else if (key == "json") {
      LOOM_TRY(take_schema(one, called, to));
    } else if (key == "grammar") {
      LOOM_TRY(take_grammar(one, called, to));
    } else if (key == "choice") {
      LOOM_TRY(take_choices(one, called, to));
    } else if (key == "json_object") {
      bool on = false;
      LOOM_TRY(take_bool(one, called, on));
      if (on) to.options.json_schema = R"({"type":"object"})";
    } else {
      LOOM_TRY(must_be_off(one, called));
    }
  }
  return {};
}

Status take_format(const JsonValue& value, std::string_view name, TextRequest& to) {
  const JsonValue* type = value.find("type");
  const std::string kind = type != nullptr ? type->text() : std::string();
  if (kind == "text") return {};
  const JsonValue* inner = value.find("json_schema");
  const JsonValue* schema = inner != nullptr ? inner->find("schema") : value.find("schema");
  if (kind == "json_object" && schema == nullptr) {
    to.options.json_schema = R"({"type":"object"})";
    return {};
  }
  if (kind != "json_schema" && kind != "json_object") {
    return invalid(cat(name, ".type must be \"text\", \"json_object\" or \"json_schema\"; got ",
                       type != nullptr ? type->describe() : value.describe()));
  }
  if (schema == nullptr) return invalid(cat(name, ".json_schema.schema is missing"));
  return take_schema(*schema, cat(name, ".json_schema.schema"), to);
}

}  // namespace loom::core
