// The formats of models: one row each, in format_NAME.cpp, with everything that opening and writing
// ask about it. A build may leave formats out (cmake/options.cmake): the row stays and knows its
// files, but has no functions, so that such a file gets the answer which option brings its reader.
// Private to the room.
#pragma once

#include <span>
#include <string_view>

#include "base/left_out.hpp"
#include "convert/convert.hpp"

namespace loom::core {

// What a path holds.
struct Found {
  const FileRef& path;
  std::span<const std::byte> bytes;  // of a file, mapped while it is opened; none of a folder
  bool folder = false;
  const OpenOptions& options;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

struct Writing {
  const FileRef& path;
  const OpenedModel& model;
  const ConvertOptions& options;
  ThreadPool& pool;
};

struct Format {
  std::string_view files;  // "ONNX files"
  // How to build a program that has it: LOOM_BUILD_WITH("LOOM_ONNX=ON"). Only for rows that are
  // left out.
  std::string_view how = {};
  bool left_out = false;  // of this build: the functions below but is() are null
  // The first row that says yes opens the file. null: a row that only writes.
  bool (*is)(const Found&) = nullptr;
  Result<OpenedModel> (*open)(const Found&) = nullptr;
  // A language model alone: of rows with `decoders`.
  Result<std::unique_ptr<ModelSource>> (*open_decoder)(const FileRef&) = nullptr;

  // Of what is written, by the name of the output. "": a folder, or a format that is not written.
  std::string_view extension = {};
  std::string_view holds = {};  // what of a network it has a place for, letters of kParts
  Status (*write_network)(const Writing&) = nullptr;
  Status (*write_decoder)(const Writing&) = nullptr;
  // What programs that read such a file may do otherwise than the model: lines for a person.
  std::vector<std::string> (*decoder_notes)(const ModelSource&) = nullptr;
  // Which models it is for, also where a build left the functions out.
  bool networks = false, decoders = false;
  bool initializers = false;  // it has OpenOptions::trainable and frozen
};

extern const Format kFolderFormat, kOriginalEntityFormat, kOriginalJsonFormat, kEntityFormat,
    kJsonFormat, kGgufFormat, kNpzFormat, kTfliteFormat, kOnnxFormat, kSafetensorsFormat;

// All rows, in the order in which files are asked. The last takes every file that no other took.
std::span<const Format* const> all_formats();
// The first row that says a path is its; null: none.
const Format* format_of(const Found& found);

}  // namespace loom::core
