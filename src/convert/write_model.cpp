// Writes a model in another format: see convert.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "convert/formats/formats.hpp"

namespace loom::core {
namespace {

std::string extension_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  return to_lower_ascii(path.substr(dot));
}

// Optional parts of a network, a letter each, with their names in messages.
struct Part {
  char letter;
  std::string_view name;
};
constexpr Part kParts[] = {{'d', "the description of the network"},
                           {'w', "the weights"},
                           {'m', "the loss, the names of classes and of columns"},
                           {'n', "the normalization of inputs"},
                           {'t', "the state of training"},
                           {'p', "the proof"}};

std::string parts_of(const NetworkSource& source) {
  std::string letters = source.fresh ? "d" : "dw";
  if (source.sections.find("model") != nullptr) letters += 'm';
  const auto under = [&](std::string_view folder) {
    return std::ranges::any_of(source.blobs, [=](const EntityOutput& blob) {
      return std::string_view(blob.path).starts_with(folder);
    });
  };
  if (under("input/")) letters += 'n';
  if (under("state/") || source.sections.find("training") != nullptr) letters += 't';
  if (source.sections.find("proof") != nullptr) letters += 'p';
  return letters;
}

// The row that writes such a model to such a name; may be null.
const Format* format_for(std::string_view extension, bool decoder) {
  for (const Format* format : all_formats()) {
    if (format->extension == extension && (decoder ? format->decoders : format->networks))
      return format;
  }
  return nullptr;
}

Error no_such_format(const FileRef& path, std::string_view extension, bool decoder) {
  std::vector<std::string> choices;
  for (const Format* format : all_formats()) {
    if (!format->extension.empty() && (decoder ? format->write_decoder : format->write_network))
      choices.emplace_back(format->extension);
  }
  const Format* folder = format_for("", decoder);
  if (folder != nullptr && !folder->left_out)
    choices.emplace_back("or a folder (a name without an extension)");
  const std::string target = extension.empty() ? "a folder" : cat("'", extension, "'");
  return unsupported(cat("cannot write ", decoder ? "a language model" : "a network", " as ",
                         target, "; choose ", join(choices, ", ")),
                     path);
}

}  // namespace

std::vector<std::string> left_out(const std::string& path, const OpenedModel& model,
                                  const WriteOptions& options) {
  const std::string extension = extension_of(path);
  if (model.decoder != nullptr) {
    const Format* written = format_for(extension, true);
    const bool notes = written != nullptr && written->decoder_notes != nullptr;
    return notes ? written->decoder_notes(*model.decoder) : std::vector<std::string>();
  }
  if (model.network == nullptr) return {};
  const Format* format = format_for(extension, false);
  if (format == nullptr || format->left_out) return {};
  const bool full = extension == ".json" && options.with_weights;
  const std::string_view holds = full ? "dwmn" : format->holds;
  const std::string has = parts_of(*model.network);
  std::vector<std::string> names;
  for (const Part& part : kParts) {
    if (has.find(part.letter) != std::string::npos &&
        holds.find(part.letter) == std::string_view::npos)
      names.emplace_back(part.name);
  }
  if (names.empty()) return {};
  const bool bare = extension == ".json" && !full;
  return {cat("left out, as ", extension, bare ? " without --with-weights" : "",
              " has no place for it: ", join(names, ", "))};
}

Status write_model(const FileRef& path, const OpenedModel& model, const WriteOptions& options,
                   ThreadPool& pool) {
  const std::string extension = extension_of(path);
  const bool decoder = model.decoder != nullptr;
  const Format* format = format_for(extension, decoder);
  if (format == nullptr) return no_such_format(path, extension, decoder);
  if (format->left_out)
    return left_out_of_build(cat("writer for ", format->files), format->how, path);
  const WriteRequest out{path, model, options, pool};
  return decoder ? format->write_decoder(out) : format->write_network(out);
}

}  // namespace loom::core
