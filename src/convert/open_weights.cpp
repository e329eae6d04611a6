// Weights for a network that is known already: see open_network_weights() in convert.hpp.
#include "convert/convert.hpp"
#include "io/files/file.hpp"
#include "io/files/foreign_file.hpp"
#include "train_io/file_memory.hpp"

#ifndef LOOM_WITHOUT_ARRAYS
#include "io/arrays/npy.hpp"
#include "train_io/weights/arrays_source.hpp"
#endif

namespace loom::core {

Result<std::unique_ptr<NetworkSource>> open_network_weights(const FileRef& path,
                                                            const NetworkSpec& spec,
                                                            const OpenOptions& options) {
  if (!file_exists(path)) return make_error(Code::not_found, "no such file", path);
  LOOM_TRY(check_opening(path, options.memory));
#ifndef LOOM_WITHOUT_ARRAYS
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  if (const auto foreign = foreign_file(file.bytes(), path)) return *foreign;
  const Result<WeightsFile> weights = open_weights(path);
  const bool named = weights.ok() && !weights->text("loom").ok();
  if (named || is_npz(file.bytes())) {
    LOOM_ASSIGN(std::unique_ptr<NetworkSource> arrays, open_arrays(path, spec, options.memory));
    arrays->allow_nonfinite = options.allow_nonfinite;
    return arrays;
  }
#else
  (void)spec;  // only arrays use parameter paths
#endif
  LOOM_ASSIGN(OpenedModel model, open_network(path, options));
  if (model.fresh) {
    return bad_file("this is a description and holds no weights; give a file that loom train wrote",
                    path);
  }
  return std::move(model.network);
}

}  // namespace loom::core
