// An evolution as one sees it: fitness by generation, and how large each species was.
#pragma once

#include <string>
#include <vector>

#include "loom/loom.hpp"

namespace loom::cli {

// A whole SVG document. Above: the best and the mean fitness in the band from worst to best. Below:
// the members of each species as bands.
std::string evolution_svg(const std::vector<GenerationReport>& history, const std::string& title);

}  // namespace loom::cli
