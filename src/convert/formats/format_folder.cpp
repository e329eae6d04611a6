// Hugging Face folders: config.json, model.safetensors, tokenizer.json and friends.
#include "convert/formats/formats.hpp"

#ifndef LOOM_WITHOUT_HF
#include "convert/checkpoint.hpp"
#include "formats/hf/export.hpp"
#include "formats/hf/source.hpp"
#endif

namespace loom::core {
namespace {

bool is_folder(const Probe& file) {
  return file.folder;
}

#ifndef LOOM_WITHOUT_HF
Result<OpenedModel> open_folder(const Probe& file) {
  LOOM_TRY(check_model_folder(file.path));
  OpenedModel model;
  model.format = "Hugging Face folder";
  LOOM_ASSIGN(model.decoder, open_hf_folder(file.path));
  model.notes = model.decoder->notes;
  return model;
}

Result<std::unique_ptr<ModelSource>> open_folder_decoder(const FileRef& folder) {
  return open_hf_folder(folder);
}

Status write_folder(const WriteRequest& out) {
  return write_hf_folder(out.path, *out.model.decoder, out.options.dtype);
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_HF
const Format kFolderFormat = {.files = "Hugging Face folders",
                              .is = is_folder,
                              .open = open_folder,
                              .open_decoder = open_folder_decoder,
                              .write_decoder = write_folder,
                              .decoders = true};
#else
const Format kFolderFormat = {.files = "Hugging Face folders",
                              .how = LOOM_BUILD_WITH("LOOM_HF=ON"),
                              .left_out = true,
                              .is = is_folder,
                              .decoders = true};
#endif

}  // namespace loom::core
