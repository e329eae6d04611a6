// loom info: the contents of a model file or folder: its grid as a tree, its parameters, its stored
// tensors. Weights are read only for --hashes or --verify.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>

#include "../hub/resolve.hpp"
#include "../shared/json_value.hpp"
#include "../shared/verbs.hpp"
#include "info_table.hpp"
#include "modelfile.hpp"

namespace loom::cli {
namespace {

struct InfoFlags {
  std::string model;
  MemoryFlags memory;
  bool json = false, tensors = false, tree = false, hashes = false, verify = false;
  std::optional<Modelfile> modelfile;  // that names the model
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

// The record of training, for people and for --json.
struct Training {
  std::string loss;
  std::vector<std::string> classes, columns;
  std::optional<JsonValue> plan;    // of the table
  std::optional<JsonValue> recipe;  // of the run: epochs, batch and options
  bool normalizes = false, has_split = false, shuffle = true;
  double share = 0;
  int64_t seed = 1, folds = 0, fold = 0;
};

std::vector<std::string> texts_of(const JsonValue* list) {
  std::vector<std::string> texts;
  for (size_t i = 0; list != nullptr && i < list->elements().size(); ++i)
    texts.push_back(list->elements()[i].text());
  return texts;
}

// Unset for a file without such a record.
std::optional<Training> training_of(const ModelFile& file) {
  if (file.training().empty()) return {};
  const Result<JsonValue> record = JsonValue::parse(file.training(), "model");
  if (!record.ok()) return {};
  Training t;
  if (const JsonValue* loss = record->find("loss")) t.loss = loss->member_text("kind");
  t.classes = texts_of(record->find("classes"));
  for (const StoredTensor& tensor : file.tensors()) t.normalizes |= tensor.name == "input/shift";
  if (const JsonValue* columns = record->find("columns")) {
    for (const char* part : {"inputs", "targets"}) {
      for (std::string& name : texts_of(columns->find(part))) t.columns.push_back(std::move(name));
    }
  }
  const JsonValue* of_table = record->find("columns");
  if (const JsonValue* plan = of_table == nullptr ? nullptr : of_table->find("plan"))
    t.plan = *plan;
  if (const JsonValue* recipe = record->find("recipe")) t.recipe = *recipe;
  const JsonValue* split = record->find("split");
  if (split == nullptr) return t;
  t.has_split = true;
  const auto integer = [&](const char* name, int64_t& to) {
    if (const JsonValue* value = split->find(name)) to = value->integer().value_or(to);
  };
  if (const JsonValue* share = split->find("share")) t.share = share->number().value_or(0);
  if (const JsonValue* shuffle = split->find("shuffle"))
    t.shuffle = shuffle->boolean().value_or(true);
  integer("seed", t.seed);
  integer("folds", t.folds);
  integer("fold", t.fold);
  return t;
}

void set_training(const Training& t, JsonObject& out) {
  out.set("loss", t.loss).set("normalizes", t.normalizes);
  if (!t.classes.empty()) out.set("classes", t.classes);
  if (!t.columns.empty()) out.set("columns", t.columns);
  if (t.plan) out.set("table", t.plan->json());
  if (t.recipe) out.set("recipe", t.recipe->json());
  if (!t.has_split) return;
  JsonObject split;
  if (t.folds > 0) {
    split.set("folds", t.folds).set("fold", t.fold);
  } else {
    split.set("share", t.share);
  }
  out.set("split", split.set("seed", t.seed).set("shuffle", t.shuffle).value());
}

Json modelfile_json(const Modelfile& file) {
  JsonObject parameters, out;
  for (const Modelfile::Parameter& one : file.parameters) {
    if (one.name == "stop") parameters.set(one.name, one.values);
    if (one.name != "stop") parameters.set(one.name, one.values.front());
  }
  Json messages = Json::array();
  for (const ChatTurn& turn : file.messages)
    messages.push(JsonObject().set("role", turn.role).set("content", turn.content).value());
  out.set("path", file.path).set("from", file.from).set("parameters", parameters.value());
  if (!file.system.empty()) out.set("system", file.system);
  if (!file.chat_template.empty()) out.set("template", file.chat_template);
  if (!file.messages.empty()) out.set("messages", messages);
  if (!file.license.empty()) out.set("license", file.license);
  return out.value();
}

void print_json(const InfoFlags& f, const ModelFile& file) {
  const Stored stored = count(file);
  JsonObject dtypes;
  for (const auto& [name, values] : stored.dtypes) dtypes.set(name, values);
  const ParameterCounts counts = file.parameter_counts();
  JsonObject out;
  if (f.modelfile) out.set("modelfile", modelfile_json(*f.modelfile));
  out.set("model", f.model).set("format", file.format());
  if (file.decoder()) set_decoder(*file.decoder(), out);
  out.set("grid", file.grid())
      .set("parameters", file.parameters())
      .set("trained", counts.trained)
      .set("frozen", counts.frozen)
      .set("constant", counts.constant)
      .set("bytes", stored.bytes)
      .set("dtypes", dtypes.value());
  if (const std::optional<Training> training = training_of(file)) set_training(*training, out);
  if (!file.notes().empty()) out.set("notes", file.notes());
  if (f.tree || !file.decoder()) out.set("tree", layers_json(file));
  if (f.tensors || f.hashes) out.set("tensors", tensors_json(f, file));
  out.print();
}

void line(std::string_view name, const std::string& value) {
  write_line(fmt::format("{:<15} {}", name, value));
}

void print_modelfile(const Modelfile& file) {
  line("modelfile", file.path);
  if (!file.system.empty()) line("system", file.system);
  if (!file.chat_template.empty()) line("template", "in Jinja, in the place of the model's");
  for (const ChatTurn& turn : file.messages) line("message", turn.role + ": " + turn.content);
  for (const Modelfile::Parameter& one : file.parameters)
    for (const std::string& value : one.values) line("parameter", one.name + " " + value);
  if (!file.license.empty()) line("license", file.license.substr(0, file.license.find('\n')));
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

// "yes, no, ... (12)"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kMax = 10;
  if (names.size() <= kMax) return list_of(names);
  return fmt::format("{}, ... ({})", list_of({names.begin(), names.begin() + kMax}), names.size());
}

// "60 epochs, batch 32, rate 0.002, schedule cosine"
std::string recipe_text(const JsonValue& recipe) {
  std::string text;
  for (const auto& [name, value] : recipe.members()) {
    const std::string shown = value.is_text() ? value.text() : value.json().text();
    if (name == "epochs") {
      text += shown + (shown == "1" ? " epoch" : " epochs");
    } else {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, shown);
    }
  }
  return text;
}

void print_training(const Training& t) {
  line("loss", t.loss);
  if (!t.classes.empty()) line("classes", some_of(t.classes));
  if (t.plan) {
    print_plan(*t.plan);
  } else {
    if (!t.columns.empty()) line("columns", some_of(t.columns));
    line("normalization", t.normalizes ? "of the inputs, by the training samples" : "none");
  }
  if (t.recipe) line("recipe", recipe_text(*t.recipe));
  if (!t.has_split) return;
  const std::string part = t.folds > 0 ? fmt::format("fold {} of {}", t.fold + 1, t.folds)
                                       : fmt::format("--split {}", t.share);
  line("split", part + (t.shuffle ? fmt::format(" --seed {}", t.seed) : " --no-shuffle"));
}

void print_text(const InfoFlags& f, const ModelFile& file) {
  const Stored stored = count(file);
  std::string dtypes;
  for (const auto& [name, values] : stored.dtypes)
    dtypes += fmt::format("{}{} ({} values)", dtypes.empty() ? "" : ", ", name, values);
  if (f.modelfile) print_modelfile(*f.modelfile);
  line("model", f.model);
  line("format", file.format());
  if (file.decoder()) print_decoder(*file.decoder());
  line("grid", file.grid());
  line("parameters", parameters_of(file));
  if (!file.tensors().empty()) line("stored", fmt::format("{} bytes: {}", stored.bytes, dtypes));
  if (file.decoder()) print_texts(*file.decoder());
  if (const std::optional<Training> training = training_of(file)) print_training(*training);
  for (const std::string& note : file.notes()) line("note", note);
  // The planes of a language model are alike, so its tree is printed when somebody asks.
  if (f.tree || !file.decoder()) print_tree(file);
  if (f.tensors || f.hashes) print_tensors(f, file);
}

int run(InfoFlags& f) {
  if (is_modelfile(f.model)) {
    Result<Modelfile> file = read_modelfile(f.model);
    if (!file.ok()) return fail(file.error());
    const Result<std::string> model = resolve_model_path(file->from, f.json);
    if (!model.ok()) return fail(model.error());
    f.modelfile = std::move(*file);
    f.model = *model;
  }
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
  verb.option(
          "MODEL", f->model,
          "Folder, .entity, .gguf, .onnx, .tflite, .safetensors, .json, a Modelfile, or a name, "
          "as hf:ORG/NAME")
      .names_model(true)
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
