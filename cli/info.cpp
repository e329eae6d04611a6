// loom info: what a model folder holds, without loading its weights.
#include <fmt/core.h>

#include <map>
#include <memory>

#include "engine/checkpoint.hpp"
#include "verbs.hpp"

namespace loom::cli {
namespace {

struct InfoFlags {
  std::string model;
  bool json = false, tensors = false;
};

struct Totals {
  int64_t values = 0, bytes = 0;
  std::map<std::string, int64_t> dtypes;  // values per stored type
};

Totals count(const SafeTensors& file) {
  Totals totals;
  for (const SafeTensor& tensor : file.tensors()) {
    totals.values += tensor.count();
    totals.bytes += static_cast<int64_t>(tensor.data.size());
    totals.dtypes[std::string(safe_dtype_name(tensor.dtype))] += tensor.count();
  }
  return totals;
}

std::string shape_text(const SafeTensor& tensor) {
  std::string text;
  for (const int64_t extent : tensor.shape)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

std::string template_text(const Checkpoint& c) {
  if (!c.has_chat_template) return "no";
  return c.chat_template_readable ? "yes" : "yes, but beyond the subset that is read";
}

void print_json(const InfoFlags& f, const Checkpoint& c, const Totals& totals) {
  JsonObject dtypes;
  for (const auto& [name, values] : totals.dtypes) dtypes.set(name, values);
  std::vector<TokenId> eos(c.config.eos_token_ids.begin(), c.config.eos_token_ids.end());
  JsonObject out;
  out.set("model", f.model)
      .set("architecture", c.config.architecture)
      .set("layers", c.config.num_layers)
      .set("width", c.config.hidden_size)
      .set("inner_width", c.config.intermediate_size)
      .set("heads", c.config.num_heads)
      .set("kv_heads", c.config.num_kv_heads)
      .set("head_dim", c.config.head_dim)
      .set("vocab", c.config.vocab_size)
      .set("context", c.config.max_positions)
      .set("tied_head", c.config.tie_word_embeddings)
      .set("parameters", totals.values)
      .set("bytes", totals.bytes)
      .set("dtypes", dtypes.value())
      .set("tokenizer_tokens", c.tokenizer ? c.tokenizer->vocab_size() : 0)
      .set("chat_template", c.has_chat_template)
      .set("chat_template_readable", c.chat_template_readable)
      .set("eos_token_ids", eos);
  if (f.tensors) {
    JsonValue list = JsonValue::array();
    for (const SafeTensor& tensor : c.tensors.tensors()) {
      JsonValue shape = JsonValue::array();
      for (const int64_t extent : tensor.shape) shape.push(JsonValue::integer(extent));
      list.push(JsonObject()
                    .set("name", tensor.name)
                    .set("dtype", safe_dtype_name(tensor.dtype))
                    .set("shape", std::move(shape))
                    .set("bytes", static_cast<int64_t>(tensor.data.size()))
                    .value());
    }
    out.set("tensors", std::move(list));
  }
  out.print();
}

void print_text(const InfoFlags& f, const Checkpoint& c, const Totals& totals) {
  const auto line = [](std::string_view name, const std::string& value) {
    write_out(fmt::format("{:<15} {}\n", name, value));
  };
  const HfConfig& m = c.config;
  std::string dtypes;
  for (const auto& [name, values] : totals.dtypes)
    dtypes += fmt::format("{}{} ({} values)", dtypes.empty() ? "" : ", ", name, values);
  line("model", f.model);
  line("architecture", m.architecture);
  line("layers", fmt::format("{} of width {}, inner width {}", m.num_layers, m.hidden_size,
                             m.intermediate_size));
  line("heads", fmt::format("{} of width {}, {} for keys and values", m.num_heads, m.head_dim,
                            m.num_kv_heads));
  line("vocabulary", fmt::format("{}, head {}", m.vocab_size,
                                 m.tie_word_embeddings ? "tied to the embedding" : "of its own"));
  line("context", fmt::format("{} positions", m.max_positions));
  line("parameters", fmt::format("{}", totals.values));
  line("stored", fmt::format("{} bytes: {}", totals.bytes, dtypes));
  line("tokenizer", c.tokenizer ? fmt::format("{} tokens", c.tokenizer->vocab_size()) : "none");
  line("chat template", template_text(c));
  if (!f.tensors) return;
  for (const SafeTensor& tensor : c.tensors.tensors()) {
    write_out(fmt::format("{:<56} {:<8} {}\n", tensor.name, safe_dtype_name(tensor.dtype),
                          shape_text(tensor)));
  }
}

int run(const InfoFlags& f) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(f.model);
  if (!checkpoint.ok()) return fail(checkpoint.error());
  const Totals totals = count(checkpoint->tensors);
  if (f.json) {
    print_json(f, *checkpoint, totals);
  } else {
    print_text(f, *checkpoint, totals);
  }
  return kDone;
}

}  // namespace

Verb add_info(Command app) {
  auto f = std::make_shared<InfoFlags>();
  const Command verb = app.command("info", "Show what a model folder holds.");
  verb.examples(
      "  loom info models/stories.entity\n"
      "  loom info models/stories.entity --tensors --json");
  verb.option("MODEL", f->model, "Folder with config.json and safetensors").required();
  verb.flag("--tensors", f->tensors, "List the tensors too");
  verb.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
