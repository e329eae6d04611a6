#include "llm/model_source.hpp"

namespace loom::core {

Result<Network> ModelSource::map() const {
  return make_error(Code::internal, "its weights are not in the order of networks", path);
}

}  // namespace loom::core
