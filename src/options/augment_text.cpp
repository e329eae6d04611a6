#include "loom/augment.hpp"

namespace loom {

Result<Augment> parse_augment(std::string_view text) {
  TrainerOptions options;
  const Status read = set_option(options, "augment", text);
  if (!read.ok()) return read.error();
  return options.augment;
}

std::string augment_text(const Augment& augment) {
  TrainerOptions options;
  options.augment = augment;
  return option_text(options, "augment").or_exit();
}

}  // namespace loom
