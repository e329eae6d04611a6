// The model formats: one row each, in format_NAME.cpp, with everything needed for opening and
// writing. A build may leave formats out (cmake/options.cmake). Then the row still detects its
// files, but has no functions, so the error names the build option of its reader. Private to the
// room.
#pragma once

#include <span>
#include <string_view>

#include "base/left_out.hpp"
#include "convert/convert.hpp"

namespace loom::core {

// An input path and its contents.
struct Probe {
  const FileRef& path;
  std::span<const std::byte> bytes;  // of a file, mapped while it is opened; empty for a folder
  bool folder = false;
  const OpenOptions& options;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

struct WriteRequest {
  const FileRef& path;
  const OpenedModel& model;
  const WriteOptions& options;
  ThreadPool& pool;
};

struct Format {
  std::string_view files;  // "ONNX files"
  // Build option that adds it: LOOM_BUILD_WITH("LOOM_ONNX=ON"). Only for rows that are left out.
  std::string_view how = {};
  bool left_out = false;  // in this build: the functions below except is() are null
  // The first row whose is() returns true opens the file. May be null: a row that only writes.
  bool (*is)(const Probe&) = nullptr;
  Result<OpenedModel> (*open)(const Probe&) = nullptr;
  // Opens only the language model: in rows with `decoders`.
  Result<std::unique_ptr<ModelSource>> (*open_decoder)(const FileRef&) = nullptr;

  // The file ending when writing; empty for a folder, or for a read-only format.
  std::string_view extension = {};
  std::string_view holds = {};  // the parts of a network that it can hold, letters of kParts
  Status (*write_network)(const WriteRequest&) = nullptr;
  Status (*write_decoder)(const WriteRequest&) = nullptr;
  // Possible differences in other programs that read such a file: lines for people.
  std::vector<std::string> (*decoder_notes)(const ModelSource&) = nullptr;
  // The supported models, also if a build left the functions out.
  bool networks = false, decoders = false;
  bool initializers = false;  // supports OpenOptions::trainable and frozen
};

extern const Format kFolderFormat, kOriginalEntityFormat, kOriginalJsonFormat, kEntityFormat,
    kJsonFormat, kGgufFormat, kNpzFormat, kTfliteFormat, kOnnxFormat, kSafetensorsFormat;

// All rows, in the order of detection. The last accepts every other file.
std::span<const Format* const> all_formats();
// The first row that accepts a path; may be null.
const Format* format_of(const Probe& found);

// The folder of a file, with its trailing slash; "." for a plain name.
std::string parent_folder(const FileRef& path);

}  // namespace loom::core
