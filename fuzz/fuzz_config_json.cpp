// Any bytes as JSON: refused in one line with an offset, or a value whose text reads back to the
// same text. The same bytes as config.json and as generation_config.json: refused, or within range.
#include <string>

#include "check.hpp"
#include "formats/config/config.hpp"
#include "io/json/json.hpp"

namespace {

void check_error(const loom::Error& error, size_t size) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
  CHECK(error.offset >= -1 && error.offset <= static_cast<int64_t>(size));
}

void check_config(const loom::core::DecoderConfig& config) {
  constexpr int64_t kMax = int64_t{1} << 24;
  for (const int64_t v :
       {config.hidden_size, config.intermediate_size, config.num_layers, config.num_kv_heads,
        config.vocab_size, config.max_positions, config.num_heads * config.head_dim}) {
    CHECK(v >= 1 && v <= kMax);
  }
  CHECK(config.num_heads % config.num_kv_heads == 0 && config.head_dim % 2 == 0);
  CHECK(config.layers.empty() || config.layers.size() == static_cast<size_t>(config.num_layers));
  for (const loom::core::DecoderLayer& layer : config.layers)
    CHECK(layer.window >= 0 && layer.window < config.max_positions && layer.rope_theta >= 0);
  CHECK(config.rope_width >= 0 && config.rope_width <= config.head_dim);
  for (const int64_t id : config.eos_token_ids) CHECK(id >= 0 && id < config.vocab_size);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "config.json";
  // The bytes in place: a read past their end is detected.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = loom::core::parse_json(text, where);
  if (!value.ok()) {
    check_error(value.error(), size);
    CHECK(value.error().offset >= 0);
    return 0;
  }
  const std::string dumped = loom::core::dump_json(*value);
  const auto again = loom::core::parse_json(dumped, where);
  CHECK(again.ok());
  CHECK(loom::core::dump_json(*again) == dumped);
  const auto pretty = loom::core::parse_json(loom::core::dump_json(*value, 1), where);
  CHECK(pretty.ok());
  CHECK(loom::core::dump_json(*pretty) == dumped);
  if (!value->is_object()) return 0;
  const auto config = loom::core::parse_hf_config(text, text, where);
  if (config.ok()) {
    check_config(*config);
  } else {
    check_error(config.error(), size);
  }
  return 0;
}
