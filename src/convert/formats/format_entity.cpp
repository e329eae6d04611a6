// Our own files, .entity: networks, and language models with all that belongs to them.
#include "convert/formats/formats.hpp"
#include "convert/packing.hpp"
#include "formats/entity/model.hpp"
#include "io/weights/entity.hpp"

namespace loom::core {
namespace {

bool is_entity(const Probe& file) {
  return entity_version(file.bytes) != 0;
}

Result<OpenedModel> open_entity_model(const Probe& found) {
  OpenedModel model;
  model.format = "entity";
  LOOM_ASSIGN(std::shared_ptr<const Entity> file, open_entity(found.path));
  if (file->header().find("language_model") != nullptr) {
    LOOM_ASSIGN(model.decoder, open_entity_source(std::move(file)));
  } else {
    LOOM_ASSIGN(model.network, open_network_entity(std::move(file)));
  }
  return model;
}

Result<std::unique_ptr<ModelSource>> open_entity_decoder(const FileRef& path) {
  LOOM_ASSIGN(std::shared_ptr<const Entity> file, open_entity(path));
  return open_entity_source(std::move(file));
}

Status write_decoder_entity(const WriteRequest& out) {
  const ModelSource& source = *out.model.decoder;
  const WriteOptions& options = out.options;
  SaveModelOptions save;
  save.policy = policy_of(options);
  save.policy.dtype = [&](const Param& param, DType stored) {
    if (const std::optional<DType> dtype = ruled(param, options)) return *dtype;
    return options.dtype ? model_dtype(param, source, *options.dtype) : stored;
  };
  save.dtype = options.dtype;
  save.progress.report = options.progress;
  return save_model(out.path, source, save, out.pool);
}

Status write_network_entity(const WriteRequest& out) {
  SaveNetworkOptions save;
  save.policy = network_policy(out.options);
  save.progress.report = out.options.progress;
  return save_network(out.path, *out.model.network, save, out.pool);
}

}  // namespace

const Format kEntityFormat = {.files = ".entity files",
                              .is = is_entity,
                              .open = open_entity_model,
                              .open_decoder = open_entity_decoder,
                              .extension = ".entity",
                              .holds = "dwmntp",
                              .write_network = write_network_entity,
                              .write_decoder = write_decoder_entity,
                              .networks = true,
                              .decoders = true};

}  // namespace loom::core
