// ONNX: networks, with metadata in Loom's own files.
#include "base/text.hpp"
#include "convert/formats/formats.hpp"

#ifndef LOOM_WITHOUT_ONNX
#include "bridge/finite_weight.hpp"
#include "bridge/network_json.hpp"
#include "convert/imported.hpp"
#include "onnx/export/export.hpp"
#ifndef LOOM_WITHOUT_EVALUATE
#include "backend/reference/reference.hpp"
#include "onnx/interpreter/folder.hpp"
#endif
#endif

namespace loom::core {
namespace {

bool is_onnx(const Probe& file) {
  return to_lower_ascii(file.path.name()).ends_with(".onnx");
}

#ifndef LOOM_WITHOUT_ONNX
// The loss, the names of classes and those of a state_dict, which the metadata keeps.
Status read_metadata(const std::vector<std::pair<std::string, std::string>>& metadata,
                     NetworkSource& source) {
  for (const auto& [key, value] : metadata) {
    if (key == kOnnxStateDict) {
      LOOM_ASSIGN(const JsonValue names, parse_json(value, source.path + ": metadata"));
      LOOM_ASSIGN(source.spec.state_dict, read_state_dict(names, source.path));
    }
    if (key != kOnnxTrainedFor) continue;
    LOOM_ASSIGN(const JsonValue kept, parse_json(value, source.path + ": metadata"));
    JsonValue section = JsonValue::object();
    section.add("dtype", JsonValue::string("float32"));
    for (const auto& [name, item] : kept.members()) section.add(name, item);
    source.sections.add("model", std::move(section));
  }
  return {};
}

Result<OpenedModel> open_onnx(const Probe& file) {
  const FileRef& path = file.path;
  LOOM_ASSIGN(ImportedNetwork imported, load_onnx(path, import_options(file.options, true)));
  const auto metadata = std::move(imported.metadata);
  OpenedModel model = opened_network("ONNX", path, std::move(imported));
  auto& source = static_cast<MemorySource&>(*model.network);
  LOOM_TRY(read_metadata(metadata, source));
  return model;
}

Status write_network_onnx(const WriteRequest& out) {
  const NetworkSource& source = *out.model.network;
  LOOM_ASSIGN(Network network, Network::finalize(source.spec.grid, source.spec.input.after(1)));
  for (size_t i = 0; i < network.params().size(); ++i) {
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source, network.params()[i]));
    LOOM_TRY(load_weight(network, static_cast<int>(i), weight.stored, weight, out.pool));
  }
  OnnxExportOptions options;
  LOOM_ASSIGN(options.normalization, normalization_of(source));
  if (const JsonValue* model = source.sections.find("model")) {
    JsonValue kept = JsonValue::object();
    for (const auto& [key, value] : model->members()) {
      if (key != "dtype") kept.add(key, value);  // the weights are written as float
    }
    options.metadata = {{std::string(kOnnxTrainedFor), dump_json(kept)}};
  }
  if (!source.spec.state_dict.empty())
    options.metadata.emplace_back(kOnnxStateDict,
                                  dump_json(state_dict_json(source.spec.state_dict)));
  return write_onnx(out.path, network, source.spec.input, options);
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_ONNX
OnnxImportOptions import_options(const OpenOptions& options, bool for_training) {
  OnnxImportOptions made = {.open_extent = options.open_extent,
                            .take_normalization = true,
                            .for_training = options.for_training.value_or(for_training),
                            .trainable = options.trainable,
                            .frozen = options.frozen};
#ifndef LOOM_WITHOUT_EVALUATE
  made.folder = evaluate::evaluating_folder(reference_ops());
#endif
  return made;
}

OpenedModel opened_network(std::string format, const FileRef& path, ImportedNetwork imported) {
  OpenedModel model;
  model.format = std::move(format);
  model.notes = std::move(imported.notes);
  auto source = std::make_unique<MemorySource>(std::move(imported.network));
  source->path = path;
  for (ImportedParam& p : imported.params) source->values[p.path] = std::move(p.values);
  keep_normalization(std::move(imported.normalization), *source);
  model.network = std::move(source);
  return model;
}

const Format kOnnxFormat = {.files = "ONNX files",
                            .is = is_onnx,
                            .open = open_onnx,
                            .extension = ".onnx",
                            .holds = "dwmn",
                            .write_network = write_network_onnx,
                            .networks = true,
                            .initializers = true};
#else
const Format kOnnxFormat = {.files = "ONNX files",
                            .how = LOOM_BUILD_WITH("LOOM_ONNX=ON"),
                            .left_out = true,
                            .is = is_onnx,
                            .extension = ".onnx",
                            .networks = true};
#endif

}  // namespace loom::core
