// Fields that dialects share under names of their own.
#pragma once

#include "serve/fields.hpp"
#include "serve/service.hpp"

namespace loom::core {

using TakeText = Status (*)(const JsonValue& value, std::string_view name, TextRequest& to);

Status take_max_tokens(const JsonValue& value, std::string_view name, TextRequest& to);  // -1: many
Status take_temperature(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_top_p(const JsonValue& value, std::string_view name, TextRequest& to);  // 0: the best
Status take_top_k(const JsonValue& value, std::string_view name, TextRequest& to);  // -1, 0: all
Status take_min_p(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_repetition(const JsonValue& value, std::string_view name, TextRequest& to);
// As llama.cpp and Ollama have it: 0 is no penalty, -1 all tokens.
Status take_window(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_seed(const JsonValue& value, std::string_view name, TextRequest& to);  // -1: any
Status take_stop(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_stream(const JsonValue& value, std::string_view name, TextRequest& to);
Status take_ignore_eos(const JsonValue& value, std::string_view name, TextRequest& to);

// Of a request R, which has its TextRequest as `text`.
template <class R>
BodyField<R> text_field(std::string_view name, TakeText take) {
  return {name, [take](const JsonValue& value, std::string_view called, R& to) {
            return take(value, called, to.text);
          }};
}
template <class R>
BodyField<R> off_field(std::string_view name, double off = 0) {
  return {name, [off](const JsonValue& value, std::string_view called, R&) {
            return must_be_off(value, called, off);
          }};
}
// Kept as it is, to be read when the other fields are known.
template <class R>
BodyField<R> kept_field(std::string_view name, const JsonValue* R::*where) {
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
// What every dialect has in some form, under the names of llama.cpp.
template <class R>
std::vector<BodyField<R>> text_defaults() {
  return {
      text_field<R>("n_predict", take_max_tokens),
      text_field<R>("temperature", take_temperature),
      text_field<R>("top_k", take_top_k),
      text_field<R>("top_p", take_top_p),
      text_field<R>("min_p", take_min_p),
      text_field<R>("repeat_penalty", take_repetition),
      text_field<R>("repeat_last_n", take_window),
      text_field<R>("seed", take_seed),
      text_field<R>("stop", take_stop),
      text_field<R>("ignore_eos", take_ignore_eos),
  };
}
// Known, and without a meaning here.
template <class R>
BodyField<R> ignored_field(std::string_view name) {
  return {name, {}};
}

}  // namespace loom::core
