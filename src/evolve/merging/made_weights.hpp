// Models whose parameters are computed from those of others: a description like that of one model,
// and a function that computes values. Writers and loaders handle them like models in files.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "evolve/merging/weights.hpp"

namespace loom::core {

// Fills all values of `param` of the described model. It is called again for a parameter after
// another one was requested.
using MakeValues = std::function<Status(const Param& param, std::vector<float>& out)>;

// `like`: the source of everything except values. It is kept alive, because it may refer to blobs
// and texts of its file. Parameters keep their number types there. Its training data is left out.
Result<OpenedModel> made_model(std::shared_ptr<const OpenedModel> like, MakeValues make);

}  // namespace loom::core
