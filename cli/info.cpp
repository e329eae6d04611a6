// loom info: what a model file or folder holds: its grid as a tree, its parameters, its stored
// tensors. Weights are read only where --hashes or --verify ask for them.
#include <fmt/core.h>

#include <map>
#include <memory>
#include <optional>

#include "engine/checkpoint.hpp"
#include "engine/file_memory.hpp"
#include "engine/model_report.hpp"
#include "io/entity.hpp"
#include "io/hash.hpp"
#include "verbs.hpp"

namespace loom::cli {
namespace {

struct InfoFlags {
  std::string model;
  MemoryFlags memory;
  bool json = false, tensors = false, tree = false, hashes = false, verify = false;
};

// Everything that is printed.
struct Facts {
  OpenedModel model;
  ModelReport report;
  std::unique_ptr<TensorFile> file;  // null: a file without tensors
  int64_t values = 0, bytes = 0;
  std::map<std::string, int64_t> dtypes;  // values per stored type
  std::optional<Tokenizer> tokenizer;
  bool has_chat = false, readable_chat = false;
};

void count(Facts& facts) {
  if (facts.file == nullptr) return;
  for (const TensorEntry& entry : facts.file->entries()) {
    if (entry.dtype == "text") continue;
    facts.values += entry.count();
    facts.bytes += static_cast<int64_t>(entry.bytes);
    facts.dtypes[entry.dtype] += entry.count();
  }
}

Result<Facts> gather(const InfoFlags& f) {
  Facts facts;
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_TRY(check_opening(f.model, memory));
  LOOM_ASSIGN(facts.model, open_model(f.model));
  LOOM_ASSIGN(facts.report, report_model(facts.model));
  Result<std::unique_ptr<TensorFile>> file = open_tensor_file(f.model);
  if (file.ok()) facts.file = std::move(*file);
  count(facts);
  if (facts.model.decoder == nullptr) return facts;
  const ModelSource& source = *facts.model.decoder;
  if (!source.tokenizer_json.empty()) {
    LOOM_ASSIGN(facts.tokenizer, Tokenizer::parse(source.tokenizer_json, source.tokenizer_where));
  }
  facts.has_chat = !source.chat_template.empty();
  facts.readable_chat =
      facts.has_chat && ChatTemplate::parse(source.chat_template, "the chat template").ok();
  return facts;
}

std::string shape_text(const TensorEntry& entry) {
  std::string text;
  for (const int64_t extent : entry.shape)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
  return "[" + text + "]";
}

std::string hash_of(const Facts& facts, size_t index) {
  const std::string hash = hash_hex(facts.file->bytes(index));
  facts.file->release(index);
  return hash;
}

JsonValue layers_json(const ModelReport& report) {
  JsonValue list = JsonValue::array();
  for (const LayerReport& r : report.layers) {
    JsonObject item;
    item.set("at", r.at).set("type", r.type).set("settings", r.settings);
    if (r.depth == 0) item.set("in", r.in).set("out", r.out);
    if (!r.notes.empty()) item.set("notes", r.notes);
    list.push(item.set("parameters", r.parameters).value());
  }
  return list;
}

JsonValue tensors_json(const InfoFlags& f, const Facts& facts) {
  JsonValue list = JsonValue::array();
  for (size_t i = 0; facts.file != nullptr && i < facts.file->entries().size(); ++i) {
    const TensorEntry& entry = facts.file->entries()[i];
    JsonValue shape = JsonValue::array();
    for (const int64_t extent : entry.shape) shape.push(JsonValue::integer(extent));
    JsonObject item;
    item.set("name", entry.name)
        .set("dtype", entry.dtype)
        .set("shape", std::move(shape))
        .set("bytes", static_cast<int64_t>(entry.bytes));
    if (f.hashes) item.set("hash", hash_of(facts, i));
    list.push(item.value());
  }
  return list;
}

void set_decoder(const Facts& facts, JsonObject& out) {
  const HfConfig& c = facts.model.decoder->config;
  const std::vector<TokenId> eos(c.eos_token_ids.begin(), c.eos_token_ids.end());
  out.set("architecture", c.architecture)
      .set("layers", c.num_layers)
      .set("width", c.hidden_size)
      .set("inner_width", c.intermediate_size)
      .set("heads", c.num_heads)
      .set("kv_heads", c.num_kv_heads)
      .set("head_dim", c.head_dim)
      .set("vocab", c.vocab_size)
      .set("context", c.max_positions)
      .set("tied_head", c.tie_word_embeddings)
      .set("tokenizer_tokens", facts.tokenizer ? facts.tokenizer->vocab_size() : 0)
      .set("chat_template", facts.has_chat)
      .set("chat_template_readable", facts.readable_chat)
      .set("eos_token_ids", eos);
}

void print_json(const InfoFlags& f, const Facts& facts) {
  JsonObject dtypes;
  for (const auto& [name, values] : facts.dtypes) dtypes.set(name, values);
  JsonObject out;
  out.set("model", f.model).set("format", facts.report.format);
  if (facts.model.decoder != nullptr) set_decoder(facts, out);
  out.set("grid", facts.report.grid)
      .set("parameters", facts.report.parameters)
      .set("bytes", facts.bytes)
      .set("dtypes", dtypes.value());
  if (!facts.report.notes.empty()) out.set("notes", facts.report.notes);
  if (f.tree || facts.model.network != nullptr) out.set("tree", layers_json(facts.report));
  if (f.tensors || f.hashes) out.set("tensors", tensors_json(f, facts));
  out.print();
}

void line(std::string_view name, const std::string& value) {
  write_line(fmt::format("{:<15} {}", name, value));
}

void print_decoder(const Facts& facts) {
  const HfConfig& m = facts.model.decoder->config;
  line("architecture", m.architecture);
  line("layers", fmt::format("{} of width {}, inner width {}", m.num_layers, m.hidden_size,
                             m.intermediate_size));
  line("heads", fmt::format("{} of width {}, {} for keys and values", m.num_heads, m.head_dim,
                            m.num_kv_heads));
  line("vocabulary", fmt::format("{}, head {}", m.vocab_size,
                                 m.tie_word_embeddings ? "tied to the embedding" : "of its own"));
  line("context", fmt::format("{} positions", m.max_positions));
}

void print_tree(const ModelReport& report) {
  write_out("\n");
  for (const LayerReport& r : report.layers) {
    const std::string name = std::string(static_cast<size_t>(2 * r.depth), ' ') + r.type;
    const std::string place = r.depth == 0 ? r.at : "";
    const std::string shapes = r.depth == 0 ? fmt::format("{} -> {}", r.in, r.out) : "";
    std::string more = r.settings;
    if (!r.notes.empty()) more += (more.empty() ? "" : "; ") + r.notes;
    write_line(
        fmt::format("{:<14} {:<24} {:<26} {:>11}  {}", place, name, shapes, r.parameters, more));
  }
}

void print_text(const InfoFlags& f, const Facts& facts) {
  std::string dtypes;
  for (const auto& [name, values] : facts.dtypes)
    dtypes += fmt::format("{}{} ({} values)", dtypes.empty() ? "" : ", ", name, values);
  const bool decoder = facts.model.decoder != nullptr;
  line("model", f.model);
  line("format", facts.report.format);
  if (decoder) print_decoder(facts);
  line("grid", facts.report.grid);
  line("parameters", fmt::format("{}", facts.report.parameters));
  if (facts.file != nullptr) line("stored", fmt::format("{} bytes: {}", facts.bytes, dtypes));
  if (decoder) {
    line("tokenizer",
         facts.tokenizer ? fmt::format("{} tokens", facts.tokenizer->vocab_size()) : "none");
    line("chat template", !facts.has_chat       ? "no"
                          : facts.readable_chat ? "yes"
                                                : "yes, but beyond the subset that is read");
  }
  for (const std::string& note : facts.report.notes) line("note", note);
  // A decoder's planes are alike, so its tree is printed when somebody asks.
  if (f.tree || !decoder) print_tree(facts.report);
  if (!(f.tensors || f.hashes) || facts.file == nullptr) return;
  write_out("\n");
  for (size_t i = 0; i < facts.file->entries().size(); ++i) {
    const TensorEntry& entry = facts.file->entries()[i];
    write_line(fmt::format("{:<56} {:<8} {:<18} {:>10} {}", entry.name, entry.dtype,
                           shape_text(entry), entry.bytes, f.hashes ? hash_of(facts, i) : ""));
  }
}

// Compares every blob with its hash.
Status verify(const InfoFlags& f) {
  LOOM_ASSIGN(const MemoryBudget memory, f.memory.create());
  LOOM_TRY(check_opening(f.model, memory));
  LOOM_ASSIGN(const std::unique_ptr<Entity> file, Entity::open(f.model));
  for (size_t i = 0; i < file->blobs().size(); ++i) {
    LOOM_TRY(file->verify(i));
    file->release(i);
  }
  write_line(fmt::format("{}: {} blobs match their hashes", f.model, file->blobs().size()));
  return {};
}

int run(const InfoFlags& f) {
  if (f.verify) {
    const Status verified = verify(f);
    return verified.ok() ? kDone : fail(verified.error());
  }
  const Result<Facts> facts = gather(f);
  if (!facts.ok()) return fail(facts.error());
  if (f.json) {
    print_json(f, *facts);
  } else {
    print_text(f, *facts);
  }
  return kDone;
}

}  // namespace

Verb add_info(Command app) {
  auto f = std::make_shared<InfoFlags>();
  const Command verb = app.command("info", "Show what a model file or folder holds.");
  verb.examples(
      "  loom info models/stories.entity\n"
      "  loom info models/stories.entity --tree --tensors --json\n"
      "  loom info models/stories.entity --verify");
  verb.option("MODEL", f->model, "Folder, .entity, .gguf, .onnx, .safetensors or .json").required();
  verb.flag("--tree", f->tree, "The grid cell by cell (always, where it is no language model)");
  verb.flag("--tensors", f->tensors, "List the stored tensors");
  verb.flag("--hashes", f->hashes, "List them with a hash of their bytes (XXH3-128)");
  verb.flag("--verify", f->verify, ".entity: compare every blob with the hash in the file");
  verb.flag("--json", f->json, "One JSON object instead of text");
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
