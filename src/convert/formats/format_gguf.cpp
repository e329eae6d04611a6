// GGUF: language models in one file, read and written.
#include "convert/formats/formats.hpp"

#ifndef LOOM_WITHOUT_GGUF
#include "formats/gguf/export.hpp"
#include "formats/gguf/graph_limits.hpp"
#include "formats/gguf/source.hpp"
#include "formats/gguf/tokenizer/tokenizer_limits.hpp"
#endif

namespace loom::core {
namespace {

bool is_gguf(const Probe& file) {
  return file.text().starts_with("GGUF");
}

#ifndef LOOM_WITHOUT_GGUF
Result<OpenedModel> open_gguf_model(const Probe& file) {
  OpenedModel model;
  model.format = "GGUF";
  LOOM_ASSIGN(model.decoder, open_gguf(file.path));
  return model;
}

Status write_decoder_gguf(const WriteRequest& out) {
  const WriteOptions& options = out.options;
  if (!options.rules.empty() || options.per_tensor || options.report) {
    return unsupported("one scale per matrix and reports are for .entity files", out.path);
  }
  GgufExportOptions gguf;
  gguf.dtype = options.dtype;
  gguf.progress = [&](int64_t done, int64_t total) {
    return !options.progress ||
           options.progress(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  return write_gguf(out.path, *out.model.decoder, gguf);
}

std::vector<std::string> notes_of(const ModelSource& source) {
  std::vector<std::string> notes = gguf_graph_notes(source.config);
  const auto spec = tokenizer_spec(source);
  if (!spec.ok() || !*spec) return notes;
  for (std::string& note : gguf_tokenizer_notes(**spec)) notes.push_back(std::move(note));
  return notes;
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_GGUF
const Format kGgufFormat = {.files = "GGUF files",
                            .is = is_gguf,
                            .open = open_gguf_model,
                            .open_decoder = open_gguf,
                            .extension = ".gguf",
                            .write_decoder = write_decoder_gguf,
                            .decoder_notes = notes_of,
                            .decoders = true};
#else
const Format kGgufFormat = {.files = "GGUF files",
                            .how = LOOM_BUILD_WITH("LOOM_GGUF=ON"),
                            .left_out = true,
                            .is = is_gguf,
                            .extension = ".gguf",
                            .decoders = true};
#endif

}  // namespace loom::core
