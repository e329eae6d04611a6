// A learning rule's statistics of layers, by epoch: a table, or curves.
#pragma once

#include <string>
#include <vector>

#include "loom/trainer.hpp"

namespace loom::cli {

// The text of `path`: CSV with a line for every epoch and layer. If it ends in .svg, a plot over
// the epochs of the cosine between every layer's signal and the gradient of the loss.
std::string link_report(const std::string& path, const std::vector<LinkStats>& links);

}  // namespace loom::cli
