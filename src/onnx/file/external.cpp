#include "onnx/file/external.hpp"

#include <algorithm>
#include <charconv>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/files/file.hpp"
#include "io/files/links.hpp"
#include "onnx/file/read.hpp"

namespace loom::core {
namespace {

Result<int64_t> whole_number(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return bad_file(cat(key, " is '", printable(text), "', must be an integer"));
}

// A path below the folder: no root, no drive, no way up.
bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != path.npos) return false;
  if (path.find('\\') != path.npos || path.find(':') != path.npos) return false;
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (path.substr(start, end - start) == "..") return false;
    start = end + 1;
  }
  return true;
}

// A link may lead out of the folder; a file of several names may be any other file. Downloads of a
// hub are links into their cache.
bool is_linked(const std::string& folder, const std::string& location) {
  for (size_t end = 0; end != location.npos;) {
    end = location.find('/', end + 1);
    const std::string path = folder + "/" + location.substr(0, end);
    if (is_link(path) && (end != location.npos || !is_cache_link(path))) return true;
  }
  return false;
}

}  // namespace

Status add_external(std::string_view key, std::string_view value, OnnxExternal& out) {
  if (key == "location") out.location = std::string(value);
  if (key == "offset") {
    LOOM_ASSIGN(out.offset, whole_number(key, value));
  }
  if (key == "length") {
    LOOM_ASSIGN(out.length, whole_number(key, value));
  }
  return {};
}

Result<std::vector<std::byte>> read_external(const OnnxExternal& external,
                                             const std::string& folder, uint64_t bytes) {
  if (!stays_inside(external.location))
    return bad_file(cat("its data are at '", printable(external.location),
                        "', which is not a file in the folder of the model"));
  if (external.length >= 0 && static_cast<uint64_t>(external.length) != bytes)
    return bad_file(cat("its data have ", external.length, " bytes, its shape needs ", bytes));
  const std::string path = folder + "/" + external.location;
  if (is_linked(folder, external.location))
    return bad_file("is a link; copy the data into the folder of the model", path);
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  const auto offset = static_cast<uint64_t>(external.offset);
  uint64_t end = 0;
  if (!checked_add(offset, bytes, end) || end > file.bytes().size())
    return bad_file(
        cat("has ", file.bytes().size(), " bytes; a tensor needs ", bytes, " from byte ", offset),
        path);
  const auto data = file.bytes().subspan(offset, bytes);
  return std::vector<std::byte>(data.begin(), data.end());
}

Result<OnnxModel> parse_onnx_file(std::span<const std::byte> bytes, const FileRef& path,
                                  OnnxReading reading) {
  std::string folder;
  if (!path.in_memory()) {
    const size_t slash = path.name().rfind('/');
    folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.name().substr(0, slash);
  }
  return OnnxReader(bytes, path.name(), reading, folder).model();
}

}  // namespace loom::core
