// Descriptions of networks in JSON, without weights or with them.
#include <algorithm>

#include "bridge/network_checkpoint.hpp"
#include "bridge/network_json.hpp"
#include "convert/formats/formats.hpp"
#include "convert/fresh_source.hpp"
#include "convert/packing.hpp"
#include "io/files/file.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

bool is_json(const Probe& file) {
  for (const std::byte b : file.bytes.first(std::min<size_t>(file.bytes.size(), 4096))) {
    const char c = static_cast<char>(b);
    if (c == '{') return true;
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return false;
  }
  return false;
}

// A config.json of Hugging Face.
bool is_model_config(const JsonValue& json) {
  return json.is_object() && json.find("loom") == nullptr &&
         (json.find("architectures") != nullptr || json.find("model_type") != nullptr);
}

Result<OpenedModel> open_description(const Probe& file) {
  const FileRef& path = file.path;
  OpenedModel model;
  LOOM_ASSIGN(std::string text, read_file(path));
  LOOM_ASSIGN(JsonValue json, parse_json(text, path.name()));
  if (is_network_checkpoint(json)) {
    model.format = "description with weights";
    LOOM_ASSIGN(model.network, parse_network_checkpoint(text, path));
    return model;
  }
  if (is_model_config(json)) {
    return bad_file(cat("describes a model next to its weights; give the folder that holds it",
                        path.in_memory() ? "" : cat(": ", parent_folder(path))),
                    path);
  }
  std::string().swap(text);  // frees the text before the network is created
  model.format = "description";
  JsonValue sections = description_sections(json);
  LOOM_ASSIGN(NetworkSpec spec, read_network(std::move(json), path));
  auto source = std::make_unique<FreshSource>(std::move(spec));
  source->sections = std::move(sections);
  source->path = path;
  source->fresh = true;
  model.network = std::move(source);
  model.fresh = true;
  model.notes.emplace_back("a description has no weights: these are the starting values of seed 1");
  return model;
}

Status write_text(const FileRef& path, const std::string& text) {
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

// The plan of a table, of the sections of a file.
JsonValue plan_of(const JsonValue& sections) {
  const JsonValue* model = sections.find("model");
  const JsonValue of_description = description_sections(model != nullptr ? *model : sections);
  const JsonValue* columns = of_description.find("columns");
  const bool plan = columns != nullptr && columns->find("plan") != nullptr;
  return plan ? of_description : JsonValue::object();
}

Status write_description(const WriteRequest& out) {
  const OpenedModel& model = out.model;
  if (model.network != nullptr) {
    return write_text(out.path,
                      write_network(model.network->spec, plan_of(model.network->sections)));
  }
  LOOM_ASSIGN(GridSpec grid, model_grid(*model.decoder));
  return write_text(out.path, write_network({std::move(grid), Shape{1}}));
}

Status write_network_description(const WriteRequest& out) {
  if (!out.options.with_weights) return write_description(out);
  LOOM_ASSIGN(const std::string text,
              write_network_checkpoint(*out.model.network, network_policy(out.options), out.pool));
  return write_text(out.path, text);
}

}  // namespace

const Format kJsonFormat = {.files = "descriptions (.json)",
                            .is = is_json,
                            .open = open_description,
                            .extension = ".json",
                            .holds = "d",  // with weights more: see left_out()
                            .write_network = write_network_description,
                            .write_decoder = write_description,
                            .networks = true,
                            .decoders = true};

}  // namespace loom::core
