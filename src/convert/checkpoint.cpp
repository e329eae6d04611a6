#include "convert/checkpoint.hpp"

#include "base/text.hpp"
#include "convert/formats/formats.hpp"
#include "convert/language_model.hpp"
#include "formats/config/encoder.hpp"
#include "formats/config/text_config.hpp"
#include "io/files/file.hpp"
#include "io/files/foreign_file.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

// The error for a file that is not a model: by its first bytes, then by its name.
Error not_a_model(const FileRef& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return file.error();
  if (const auto foreign = foreign_file(file->bytes(), path)) return *foreign;
  const std::string name = to_lower_ascii(path.name());
  if (name.ends_with(".entity"))
    return bad_file("is damaged: an .entity file begins with ENTITY and two zero bytes", path, 0);
  if (name.ends_with(".gguf"))
    return bad_file("is damaged: a GGUF file begins with 'GGUF'", path, 0);
  const std::string parent = parent_folder(path);
  if (!path.in_memory() && file_exists(parent + "/config.json"))
    return bad_file(cat("is one file of a model; give the folder that holds it: ", parent), path);
  return bad_file(
      "is not a language model; give an .entity or .gguf file, or a folder with config.json", path);
}

// The source of the chat template and its location; may be empty.
Result<std::string> chat_template_text(const std::string& folder, std::string& where) {
  where = folder + "/chat_template.jinja";
  if (file_exists(where)) return read_file(where);
  where = folder + "/tokenizer_config.json";
  if (!file_exists(where)) return std::string();
  LOOM_ASSIGN(const std::string text, read_file(where));
  LOOM_ASSIGN(const JsonValue config, parse_json(text, where));
  const JsonValue* value = config.find("chat_template");
  return value == nullptr ? std::string() : value->text();
}

}  // namespace

Status check_model_folder(const FileRef& path) {
  const ModelFileKind kind = model_file_kind(path);
  const std::string& folder = path.name();
  if (kind == ModelFileKind::gguf || kind == ModelFileKind::entity) return {};
  if (!is_directory(path)) {
    if (file_exists(path)) return not_a_model(path);
    return make_error(Code::not_found,
                      "no such file or folder; give an .entity or .gguf file, or a folder with "
                      "config.json and model.safetensors",
                      folder);
  }
  if (!file_exists(folder + "/config.json")) {
    return make_error(Code::not_found,
                      "config.json is missing; a model folder has config.json, tokenizer.json and "
                      "model.safetensors",
                      folder);
  }
  if (!file_exists(folder + "/model.safetensors") &&
      !file_exists(folder + "/model.safetensors.index.json")) {
    return make_error(Code::not_found,
                      "model.safetensors is missing, and so is model.safetensors.index.json; "
                      "other weight files (pytorch_model.bin) are not read; save_pretrained() of "
                      "transformers writes it",
                      folder);
  }
  return {};
}

Result<Checkpoint> Checkpoint::open(const std::string& folder) {
  LOOM_TRY(check_model_folder(folder));
  if (!is_directory(folder)) {
    return unsupported("give a model folder; a GGUF file is run, not listed, here", folder);
  }
  Checkpoint c;
  const std::string config_path = folder + "/config.json";
  const std::string generation_path = folder + "/generation_config.json";
  LOOM_ASSIGN(std::string config, read_file(config_path));
  config = text_config_json(std::move(config));
  std::string generation;
  if (file_exists(generation_path)) {
    LOOM_ASSIGN(generation, read_file(generation_path));
  }
  LOOM_ASSIGN(c.config, read_model_config(config, generation, config_path));
  LOOM_ASSIGN(c.tensors, SafeTensors::open(folder));
  if (file_exists(folder + "/tokenizer.json")) {
    LOOM_ASSIGN(c.tokenizer, load_tokenizer(folder));
  }
  std::string where;
  LOOM_ASSIGN(const std::string chat, chat_template_text(folder, where));
  c.has_chat_template = !chat.empty();
  c.chat_template_readable = c.has_chat_template && ChatTemplate::parse(chat, where).ok();
  return c;
}

Result<Tokenizer> load_tokenizer(const FileRef& path) {
  const ModelFileKind kind = model_file_kind(path);
  if (kind == ModelFileKind::gguf || kind == ModelFileKind::entity) {
    LOOM_ASSIGN(const std::unique_ptr<ModelSource> source, open_model_source(path));
    LOOM_ASSIGN(const std::optional<TokenizerSpec> spec, tokenizer_spec(*source));
    if (spec) return Tokenizer::make(*spec);
    return make_error(Code::not_found, "this model has no tokenizer", path);
  }
  const FileRef file = is_directory(path) ? FileRef(path.name() + "/tokenizer.json") : path;
  if (!file_exists(file)) {
    return make_error(Code::not_found,
                      "no such file; give an .entity or .gguf file, a model folder with "
                      "tokenizer.json, or that file",
                      file);
  }
  LOOM_ASSIGN(const std::string text, read_file(file));
  return Tokenizer::parse(text, file);
}

}  // namespace loom::core
