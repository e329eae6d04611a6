// The doors of the importer: files, models, and networks to be filled. See onnx_import.hpp.
#include "bridge/onnx_import.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/onnx_lower.hpp"
#include "io/file.hpp"

namespace loom {

Status ImportedNetwork::fill(Network& made, ThreadPool& pool, DType dtype) const {
  for (int i = 0; i < static_cast<int>(made.params().size()); ++i) {
    const Param& want = made.params()[static_cast<size_t>(i)];
    const auto have = std::find_if(params.begin(), params.end(),
                                   [&](const ImportedParam& p) { return p.path == want.path; });
    if (have == params.end())
      return make_error(Code::not_found, cat("the file has no parameter ", want.path));
    if (!(have->shape == want.spec.shape) ||
        have->values.size() != static_cast<size_t>(want.spec.shape.count()))
      return invalid(cat("parameter ", want.path, " is ", have->shape.str(), " in the file, ",
                         want.spec.shape.str(), " in the network"));
    const int64_t cols = want.spec.matrix() ? want.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(have->values.begin() + first * cols, count * cols, out);
      return {};
    };
    LOOM_TRY(made.load_param(i, dtype, rows, pool));
  }
  return {};
}

Result<ImportedNetwork> import_onnx(const OnnxModel& model, const std::string& where,
                                    const OnnxImportOptions& options) {
  return Lowering(model, where, options).run();
}

Result<ImportedNetwork> load_onnx(const std::string& path, const OnnxImportOptions& options) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  LOOM_ASSIGN(const OnnxModel model, parse_onnx(file.bytes(), path));
  return import_onnx(model, path, options);
}

}  // namespace loom
