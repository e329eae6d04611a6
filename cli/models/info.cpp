// loom info: the contents of a model file or folder: its grid as a tree, its parameters, its stored
// tensors. Weights are read only for --hashes or --verify.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>

#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

struct InfoFlags {
  std::string model;
  MemoryFlags memory;
  bool json = false, tensors = false, tree = false, hashes = false, verify = false;
};

// Values per stored type, and the bytes of all.
struct Stored {
  std::map<std::string, int64_t> dtypes;
  int64_t bytes = 0;
};

Stored count(const ModelFile& file) {
  Stored s;
  for (const StoredTensor& t : file.tensors()) {
    if (t.dtype == "text") continue;
    s.bytes += t.bytes;
    s.dtypes[t.dtype] += t.count;
  }
  return s;
}

std::string extents_text(const StoredTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

std::string hash_of(const ModelFile& file, size_t tensor) {
  return file.hash(tensor).value_or("unreadable");
}

Json layers_json(const ModelFile& file) {
  Json list = Json::array();
  file.layers([&](const LayerInfo& r) {
    JsonObject item;
    item.set("at", r.at).set("type", r.type).set("settings", r.settings);
    if (r.depth == 0) item.set("in", r.in).set("out", r.out);
    if (!r.notes.empty()) item.set("notes", r.notes);
    list.push(item.set("parameters", r.parameters).value());
  });
  return list;
}

Json tensors_json(const InfoFlags& f, const ModelFile& file) {
  Json list = Json::array();
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor& tensor = file.tensors()[i];
    Json shape = Json::array();
    for (const int64_t extent : tensor.shape) shape.push(Json::integer(extent));
    JsonObject item;
    item.set("name", tensor.name)
        .set("dtype", tensor.dtype)
        .set("shape", shape)
        .set("bytes", tensor.bytes);
    if (f.hashes) item.set("hash", hash_of(file, i));
    list.push(item.value());
  }
  return list;
}

void set_decoder(const DecoderInfo& d, JsonObject& out) {
  out.set("architecture", d.architecture)
      .set("layers", d.layers)
      .set("width", d.width)
      .set("inner_width", d.inner_width)
      .set("heads", d.heads)
      .set("kv_heads", d.kv_heads)
      .set("head_dim", d.head_dim)
      .set("vocab", d.vocab)
      .set("context", d.context)
      .set("tied_head", d.tied_head)
      .set("tokenizer_tokens", d.tokenizer_tokens)
      .set("chat_template", d.has_chat_template)
      .set("chat_template_readable", d.chat_template_readable)
      .set("eos_token_ids", d.eos_ids);
}

void print_json(const InfoFlags& f, const ModelFile& file) {
  const Stored stored = count(file);
  JsonObject dtypes;
  for (const auto& [name, values] : stored.dtypes) dtypes.set(name, values);
  const ParameterCounts counts = file.parameter_counts();
  JsonObject out;
  out.set("model", f.model).set("format", file.format());
  if (file.decoder()) set_decoder(*file.decoder(), out);
  out.set("grid", file.grid())
      .set("parameters", file.parameters())
      .set("trained", counts.trained)
      .set("frozen", counts.frozen)
      .set("constant", counts.constant)
      .set("bytes", stored.bytes)
      .set("dtypes", dtypes.value());
  if (!file.notes().empty()) out.set("notes", file.notes());
  if (f.tree || !file.decoder()) out.set("tree", layers_json(file));
  if (f.tensors || f.hashes) out.set("tensors", tensors_json(f, file));
  out.print();
}

void line(std::string_view name, const std::string& value) {
  write_line(fmt::format("{:<15} {}", name, value));
}

void print_decoder(const DecoderInfo& d) {
  line("architecture", d.architecture);
  line("layers", fmt::format("{} of width {}, inner width {}", d.layers, d.width, d.inner_width));
  line("heads",
       fmt::format("{} of width {}, {} for keys and values", d.heads, d.head_dim, d.kv_heads));
  line("vocabulary",
       fmt::format("{}, head {}", d.vocab, d.tied_head ? "tied to the embedding" : "of its own"));
  line("context", fmt::format("{} positions", d.context));
}

void print_texts(const DecoderInfo& d) {
  line("tokenizer", d.tokenizer_tokens > 0 ? fmt::format("{} tokens", d.tokenizer_tokens) : "none");
  line("chat template", !d.has_chat_template       ? "no"
                        : d.chat_template_readable ? "yes"
                                                   : "yes, but beyond the subset that is read");
}

void print_tree(const ModelFile& file) {
  write_out("\n");
  file.layers([](const LayerInfo& r) {
    const std::string name = std::string(static_cast<size_t>(2 * r.depth), ' ') + r.type;
    const std::string location = r.depth == 0 ? r.at : "";
    const std::string shapes = r.depth == 0 ? fmt::format("{} -> {}", r.in, r.out) : "";
    std::string more = r.settings;
    if (!r.notes.empty()) more += (more.empty() ? "" : "; ") + r.notes;
    write_line(
        fmt::format("{:<14} {:<24} {:<26} {:>11}  {}", location, name, shapes, r.parameters, more));
  });
}

void print_tensors(const InfoFlags& f, const ModelFile& file) {
  if (file.tensors().empty()) return;
  write_out("\n");
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const StoredTensor& t = file.tensors()[i];
    write_line(fmt::format("{:<56} {:<8} {:<18} {:>10} {}", t.name, t.dtype, extents_text(t),
                           t.bytes, f.hashes ? hash_of(file, i) : ""));
  }
}
// "5142", and the frozen part if training does not change all of them.
std::string parameters_of(const ModelFile& file) {
  const ParameterCounts counts = file.parameter_counts();
  if (counts.frozen == 0 && counts.constant == 0) return fmt::format("{}", file.parameters());
  return fmt::format("{}: {} trained, {} frozen, {} constant", file.parameters(), counts.trained,
                     counts.frozen, counts.constant);
}

void print_text(const InfoFlags& f, const ModelFile& file) {
  const Stored stored = count(file);
  std::string dtypes;
  for (const auto& [name, values] : stored.dtypes)
    dtypes += fmt::format("{}{} ({} values)", dtypes.empty() ? "" : ", ", name, values);
  line("model", f.model);
  line("format", file.format());
  if (file.decoder()) print_decoder(*file.decoder());
  line("grid", file.grid());
  line("parameters", parameters_of(file));
  if (!file.tensors().empty()) line("stored", fmt::format("{} bytes: {}", stored.bytes, dtypes));
  if (file.decoder()) print_texts(*file.decoder());
  for (const std::string& note : file.notes()) line("note", note);
  // The planes of a language model are alike, so its tree is printed when somebody asks.
  if (f.tree || !file.decoder()) print_tree(file);
  if (f.tensors || f.hashes) print_tensors(f, file);
}

int run(const InfoFlags& f) {
  EngineFlags engine;
  engine.threads = 1;
  const Result<Engine> on = engine.create(f.memory);
  if (!on.ok()) return fail(on.error());
  if (f.verify) {
    const Result<int64_t> blobs = verify_hashes(f.model, *on);
    if (!blobs.ok()) return fail(blobs.error());
    write_line(fmt::format("{}: {} blobs match their hashes", f.model, *blobs));
    return kDone;
  }
  const Result<ModelFile> file = ModelFile::open(f.model, *on);
  if (!file.ok()) return fail(file.error());
  if (f.json) {
    print_json(f, *file);
  } else {
    print_text(f, *file);
  }
  return kDone;
}

}  // namespace

Verb add_info(Command app) {
  auto f = std::make_shared<InfoFlags>();
  const Command verb = app.command("info", "Show the contents of a model file or folder.");
  verb.examples(
      "  loom info models/stories.entity\n"
      "  loom info models/stories.entity --tree --tensors --json\n"
      "  loom info models/stories.entity --verify");
  verb.option("MODEL", f->model, "Folder, .entity, .gguf, .onnx, .tflite, .safetensors or .json")
      .names_model()
      .required();
  verb.flag("--tree", f->tree, "The grid cell by cell (always, if it is not a language model)");
  verb.flag("--tensors", f->tensors, "List the stored tensors");
  verb.flag("--hashes", f->hashes, "List them with a hash of their bytes (XXH3-128)");
  verb.flag("--verify", f->verify, ".entity: compare every blob with the hash in the file");
  verb.flag("--json", f->json, "One JSON object instead of text");
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
