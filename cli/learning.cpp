#include "learning.hpp"

#include <fmt/core.h>

namespace loom::cli {

void DataFlags::add(Command verb) {
  verb.option("DATA", path, "CSV, NPY, NPZ, IDX (also .gz) or safetensors").required();
  verb.option("--labels", labels, "Labels or targets, where DATA holds the inputs alone");
  verb.option("--x", x, "Name of the inputs in an NPZ or safetensors file").show_default();
  verb.option("--y", y, "Name of the targets in it").show_default();
  verb.option("--targets", targets, "CSV: how many of the last columns are the target")
      .range(1, 1 << 24)
      .show_default();
  verb.option("--header", header,
              "CSV: is the first row a header: yes, no, auto (yes where it has no number and "
              "stands above numbers)")
      .show_default();
}

Result<DatasetOptions> DataFlags::options(bool classes) const {
  DatasetOptions options;
  LOOM_ASSIGN(options.header, parse_csv_header(header));
  options.labels = labels;
  options.x = x;
  options.y = y;
  options.targets = targets;
  options.classes = classes;
  return options;
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", share * 100);
}

}  // namespace loom::cli
