// Files of the original project, binary and JSON; they are read and never written.
#include "convert/formats/formats.hpp"
#include "formats/original/original.hpp"

#ifndef LOOM_WITHOUT_ORIGINAL
#include "convert/fresh_source.hpp"
#endif

namespace loom::core {
namespace {

bool is_original_entity(const Probe& file) {
  return is_loom1_entity(file.bytes);
}

bool is_original_json(const Probe& file) {
  return is_loom1_json(file.text());
}

#ifndef LOOM_WITHOUT_ORIGINAL
// A file of the original project: its values, and what its reader noted.
Result<OpenedModel> take_loom1(Result<Loom1Network> file, const char* format,
                               const std::string& path) {
  if (!file.ok()) return file.error();
  OpenedModel model;
  model.format = format;
  model.notes = std::move(file->notes);
  if (file->params.empty()) {
    auto source = std::make_unique<FreshSource>(std::move(file->spec));
    source->path = path;
    source->fresh = true;
    model.network = std::move(source);
    model.fresh = true;
    model.notes.emplace_back("it holds no weights: these are the starting values of seed 1");
    return model;
  }
  auto source = std::make_unique<MemorySource>(std::move(file->spec));
  source->path = path;
  for (Loom1Param& p : file->params) source->values[p.path] = std::move(p.values);
  model.network = std::move(source);
  return model;
}

Result<OpenedModel> open_original_entity(const Probe& file) {
  return take_loom1(parse_loom1_entity(file.bytes, file.path), "entity of the original, version 1",
                    file.path);
}

Result<OpenedModel> open_original_json(const Probe& file) {
  return take_loom1(parse_loom1_json(file.text(), file.path), "JSON of the original", file.path);
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_ORIGINAL
const Format kOriginalEntityFormat = {.files = ".entity files of the original",
                                      .is = is_original_entity,
                                      .open = open_original_entity};
const Format kOriginalJsonFormat = {
    .files = "JSON files of the original", .is = is_original_json, .open = open_original_json};
#else
const Format kOriginalEntityFormat = {.files = ".entity files of the original",
                                      .how = LOOM_BUILD_WITH("LOOM_ORIGINAL=ON"),
                                      .left_out = true,
                                      .is = is_original_entity};
const Format kOriginalJsonFormat = {.files = "JSON files of the original",
                                    .how = LOOM_BUILD_WITH("LOOM_ORIGINAL=ON"),
                                    .left_out = true,
                                    .is = is_original_json};
#endif

}  // namespace loom::core
