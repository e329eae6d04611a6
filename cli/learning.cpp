#include "learning.hpp"

#include <fmt/core.h>

#include "io/array_file.hpp"

namespace loom::cli {

void DataFlags::add(CLI::App& verb) {
  verb.add_option("DATA", path, "CSV, NPY, NPZ, IDX (also .gz) or safetensors")->required();
  verb.add_option("--labels", labels, "Labels or targets, where DATA holds the inputs alone");
  verb.add_option("--x", x, "Name of the inputs in an NPZ or safetensors file")
      ->capture_default_str();
  verb.add_option("--y", y, "Name of the targets in it")->capture_default_str();
  verb.add_option("--targets", targets, "CSV: how many of the last columns are the target")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
}

DatasetOptions DataFlags::options(bool classes, std::vector<std::string> names) const {
  DatasetOptions options;
  options.labels = labels;
  options.x = x;
  options.y = y;
  options.targets = targets;
  options.classes = classes;
  options.names = std::move(names);
  return options;
}

bool holds_weights(const std::string& path) {
  const Result<MappedFile> file = MappedFile::open(path);
  return file.ok() && ArrayFile::known(file->bytes());
}

std::string percent(double share) {
  return fmt::format("{:.2f} %", share * 100);
}

}  // namespace loom::cli
