// In place of table_dataset.cpp in builds without the room `table`.
#include "train_io/table_dataset.hpp"

#ifdef LOOM_WITHOUT_TABLES
namespace loom::core {

bool may_be_wide(std::span<const std::byte> /*head*/) {
  return false;
}

Result<LoadedDataset> load_table(ByteSource source, const InputSchema& /*network*/,
                                 const DatasetOptions& /*options*/) {
  return unsupported("this build has no reader of tables with a plan", source.where());
}

}  // namespace loom::core
#endif
