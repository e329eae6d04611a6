#include "capi/reading.hpp"

#include "capi/support.hpp"
#ifndef LOOM_MINIMAL
#include "capi/options/options_as.hpp"
#endif

namespace loom::capi {

Result<LoadOptions> load_options(const loom_engine* engine, const loom_load_options* given) {
  LOOM_ASSIGN(const loom_load_options from, options_of(given, "loom_load_options"));
  LoadOptions options;
  if (from.has_dtype != 0) {
    LOOM_ASSIGN(options.dtype, dtype_of(from.dtype));
  }
  if (from.has_seed != 0) options.seed = from.seed;
  options.weights = text_or(from.weights, "");
  options.open_extent = from.open_extent;
  options.progress = progress_of(from.progress, from.user);
  if (engine != nullptr) {
    LOOM_ASSIGN(options.engine, engine_of(engine));
  }
  return options;
}

#ifndef LOOM_MINIMAL
Result<DatasetOptions> dataset_options(const loom_dataset_options* given) {
  LOOM_ASSIGN(const loom_dataset_options from, options_of(given, "loom_dataset_options"));
  DatasetOptions options;
  options.labels = text_or(from.labels, "");
  options.x = text_or(from.x, options.x);
  options.y = text_or(from.y, options.y);
  options.targets = non_zero(from.targets, options.targets);
  options.classes = from.numbers == 0;
  options.inputs_only = from.inputs_only != 0;
  LOOM_ASSIGN(options.header, enum_of<DatasetOptions::Header>(from.header, "header"));
  options.weights = text_or(from.weights, "");
  options.lengths = text_or(from.lengths, "");
  if (from.has_ignore_label != 0) options.ignore_label = from.ignore_label;
#ifndef __wasm__  // modules have no reader of tables
  if (from.table != nullptr) {
    LOOM_ASSIGN(options.table, options_as<TableOptions>(from.table));
  }
  options.separator = text_or(from.separator, "");
  options.decimal = text_or(from.decimal, "");
  options.thousands = text_or(from.thousands, "");
  options.encoding = text_or(from.encoding, "");
#endif
  options.progress = progress_of(from.progress, from.user);
  return options;
}
#endif

}  // namespace loom::capi
