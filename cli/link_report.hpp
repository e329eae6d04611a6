// What a learning rule says of layers, epoch by epoch: a table, or curves.
#pragma once

#include <string>
#include <vector>

#include "loom/trainer.hpp"

namespace loom::cli {

// The text of `path`: CSV with a line for every epoch and layer, or where it ends in .svg the
// cosine of every layer's signal with the gradient of the loss over the epochs.
std::string link_report(const std::string& path, const std::vector<LinkStats>& links);

}  // namespace loom::cli
