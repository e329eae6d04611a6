// Fields that several dialects share under different names.
#pragma once

#include "serve/dialects/fields.hpp"
#include "serve/service.hpp"

namespace loom::core {

using TakeText = Status (*)(const JsonValue& value, std::string_view name, TextRequest& to);

// -1 means no limit.
Status take_max_tokens(const JsonValue& value, std::string_view name, TextRequest& to);
// 0 means greedy.
// A number that is an option of SamplerOptions, in its range.
Status take_option(const JsonValue& value, std::string_view name, std::string_view option,
                   TextRequest& to);
Status take_top_p(const JsonValue& value, std::string_view name, TextRequest& to);
// -1 or 0 means all.
Status take_top_k(const JsonValue& value, std::string_view name, TextRequest& to);
// As in llama.cpp and Ollama: 0 disables the penalty, -1 means all tokens.
Status take_window(const JsonValue& value, std::string_view name, TextRequest& to);
// -1 means random.
Status take_seed(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_stop(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_stream(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_ignore_eos(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_typical(const JsonValue& value, std::string_view name, TextRequest& to);
// -1 disables it.
Status take_sigma(const JsonValue& value, std::string_view name, TextRequest& to);
// -1 means all.
Status take_dry_window(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_dry_breakers(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_progress(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_context_shift(const JsonValue& value, std::string_view name, TextRequest& to);
// Tokens that a context shift keeps (-1: the prompt) and drops (0: half).
Status take_keep(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_discard(const JsonValue& value, std::string_view name, TextRequest& to);
// Maximum draft tokens per pass (0: none), and their minimum joint probability (GenerateOptions).
Status take_guesses(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_guess_chance(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_resumable(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_timings(const JsonValue& value, std::string_view name, TextRequest& to);
// Accepts ["text"], the only reply type.
Status take_modalities(const JsonValue& value, std::string_view name, TextRequest& to);
// Accepts "medium", the model's own length: templates support no other.
Status take_verbosity(const JsonValue& value, std::string_view name, TextRequest& to);
// As in vLLM: a non-empty text.
Status take_cache_salt(const JsonValue& value, std::string_view name, TextRequest& to);
// {"ID": bias}, or [[ID, bias], ..] as in llama.cpp, where false bans the token. A text in place of
// an ID means its tokens.
Status take_logit_bias(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_grammar(const JsonValue& value, std::string_view name, TextRequest& to);  // GBNF
Status take_schema(const JsonValue& value, std::string_view name, TextRequest& to);
// vLLM's fields: a list of texts, one of which is the reply; and {"json", "grammar", "choice",
// "json_object"}, of which one is set.
Status take_choices(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_structured(const JsonValue& value, std::string_view name, TextRequest& to);
// {"type": "text" | "json_object" | "json_schema"}, with the schema in .json_schema.schema or
// .schema.
Status take_format(const JsonValue& value, std::string_view name, TextRequest& to);

// Sampler fields under llama.cpp's names, which many clients use.
struct NamedField {
  const char* name;
  TakeText take;
};
inline constexpr NamedField kLlamaFields[] = {
    {"logit_bias", take_logit_bias},
    {"typical_p", take_typical},
    {"top_n_sigma", take_sigma},
    {"dry_penalty_last_n", take_dry_window},
    {"dry_sequence_breakers", take_dry_breakers},
    {"context_shift", take_context_shift},
    {"n_keep", take_keep},
    {"n_discard", take_discard},
    {"speculative.n_max", take_guesses},
    {"speculative.p_min", take_guess_chance},
    {"resumable", take_resumable},
    {"cache_salt", take_cache_salt},
};

// And those that are an option of the sampler.
struct SamplerField {
  const char* name;
  const char* option;
};
inline constexpr SamplerField kLlamaSampler[] = {
    {"frequency_penalty", "frequency_penalty"},
    {"presence_penalty", "presence_penalty"},
    {"xtc_probability", "xtc_probability"},
    {"xtc_threshold", "xtc_threshold"},
    {"dynatemp_range", "dynamic_range"},
    {"dynatemp_exponent", "dynamic_exponent"},
    {"mirostat", "mirostat"},
    {"mirostat_tau", "mirostat_tau"},
    {"mirostat_eta", "mirostat_eta"},
    {"dry_multiplier", "dry.multiplier"},
    {"dry_base", "dry.base"},
    {"dry_allowed_length", "dry.allowed_length"},
};

// A field of a request R with a TextRequest member `text`.
template <class R>
BodyField<R> text_field(std::string_view name, TakeText take) {
  return {name, [take](const JsonValue& value, std::string_view called, R& to) {
            return take(value, called, to.text);
          }};
}
// A number that is an option of the sampler.
template <class R>
BodyField<R> sampler_field(std::string_view name, std::string_view option) {
  return {name, [option](const JsonValue& value, std::string_view called, R& to) {
            return take_option(value, called, option, to.text);
          }};
}
template <class R>
void add_llama_fields(std::vector<BodyField<R>>& own) {
  for (const NamedField& f : kLlamaFields) own.push_back(text_field<R>(f.name, f.take));
  for (const SamplerField& f : kLlamaSampler) own.push_back(sampler_field<R>(f.name, f.option));
}
// A vLLM field that this server does not support: only its default value is accepted.
template <class R>
BodyField<R> only_default(std::string_view name, bool value) {
  return {name, [value](const JsonValue& got, std::string_view called, R&) -> Status {
            if (got.is_bool() && got.as_bool(called).value_or(!value) == value) return {};
            return unsupported(cat(called, " is not supported here; leave it out"));
          }};
}
template <class R>
BodyField<R> off_field(std::string_view name, double off = 0) {
  return {name, [off](const JsonValue& value, std::string_view called, R&) {
            return must_be_off(value, called, off);
          }};
}
// Fields that vLLM adds to OpenAI's.
template <class R>
void add_vllm_fields(std::vector<BodyField<R>>& own) {
  own.push_back(text_field<R>("guided_json", take_schema));
  own.push_back(text_field<R>("guided_grammar", take_grammar));
  own.push_back(text_field<R>("guided_choice", take_choices));
  own.push_back(text_field<R>("structured_outputs", take_structured));
  for (const char* name :
       {"guided_regex", "min_tokens", "stop_token_ids", "bad_words", "allowed_token_ids",
        "use_beam_search", "truncate_prompt_tokens", "include_stop_str_in_output",
        "prompt_logprobs", "logits_processors", "priority", "return_tokens_as_token_ids",
        "return_token_ids", "kv_transfer_params", "vllm_xargs"})
    own.push_back(off_field<R>(name));
  own.push_back(off_field<R>("length_penalty", 1));
  for (const char* name : {"skip_special_tokens", "spaces_between_special_tokens"})
    own.push_back(only_default<R>(name, true));
}
// Stored unparsed, to be read after the other fields.
template <class R>
BodyField<R> json_field(std::string_view name, const JsonValue* R::*where) {
  return {name, [where](const JsonValue& value, std::string_view, R& to) {
            to.*where = &value;
            return Status();
          }};
}
template <class R>
BodyField<R> bool_field(std::string_view name, bool R::*where) {
  return {name, [where](const JsonValue& value, std::string_view called, R& to) {
            return take_bool(value, called, to.*where);
          }};
}
template <class R>
BodyField<R> string_field(std::string_view name, std::string R::*where) {
  return {name, [where](const JsonValue& value, std::string_view called, R& to) {
            return take_text(value, called, to.*where);
          }};
}
// Fields of all dialects, under llama.cpp's names.
template <class R>
std::vector<BodyField<R>> text_defaults() {
  return {
      text_field<R>("n_predict", take_max_tokens),
      sampler_field<R>("temperature", "temperature"),
      text_field<R>("top_k", take_top_k),
      text_field<R>("top_p", take_top_p),
      sampler_field<R>("min_p", "min_p"),
      sampler_field<R>("repeat_penalty", "repetition_penalty"),
      text_field<R>("repeat_last_n", take_window),
      text_field<R>("seed", take_seed),
      text_field<R>("stop", take_stop),
      text_field<R>("ignore_eos", take_ignore_eos),
  };
}
// Accepted and ignored.
template <class R>
BodyField<R> ignored_field(std::string_view name) {
  return {name, {}};
}

}  // namespace loom::core
