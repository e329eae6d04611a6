// Tensors of ONNX files whose data are in another file beside the model, as
// onnx.save(save_as_external_data=True) and the exporter of PyTorch write them.
// Format: https://onnx.ai/onnx/repo-docs/ExternalData.html
// Invariant: no file outside of the model's folder is opened, and none for a model in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "io/files/file_ref.hpp"
#include "onnx/file/model.hpp"

namespace loom::core {

// The location of the data of a tensor. A length of -1 reaches to the end of the file.
struct OnnxExternal {
  std::string location;
  int64_t offset = 0, length = -1;
};

// One entry (key, value) of a tensor; keys that do not locate it (checksum) are skipped. Errors:
// bad_file (an invalid number).
Status add_external(std::string_view key, std::string_view value, OnnxExternal& out);

// The bytes of such a tensor. folder: of the model. Errors: bad_file (a location that leaves the
// folder, by its name or by a link; a length that is not `bytes`; a file that is too short),
// not_found.
Result<std::vector<std::byte>> read_external(const OnnxExternal& external,
                                             const std::string& folder, uint64_t bytes);

// parse_onnx() of a file, whose folder may hold data of its tensors.
Result<OnnxModel> parse_onnx_file(std::span<const std::byte> bytes, const FileRef& path,
                                  OnnxReading reading = OnnxReading::plain);

}  // namespace loom::core
