#include "llm/model_source.hpp"

namespace loom::core {

Result<Network> ModelSource::map() const {
  return make_error(Code::internal, "its weights do not lie as networks have them", path);
}

}  // namespace loom::core
