// Models whose parameters are made of those of others: a description like that of one model, and a
// function that makes values. Writers and loaders take them as any model in a file.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "evolve/weights.hpp"

namespace loom::core {

// Fills all values of `param` of the model that is described. Called again for a parameter when
// another one came between.
using MakeValues = std::function<Status(const Param& param, std::vector<float>& out)>;

// `like`: what the new model is but for its values; it may name blobs and texts of its file, so it
// is kept. Parameters have the number types that they have there. What belongs to the training of
// `like` alone is left out.
Result<OpenedModel> made_model(std::shared_ptr<const OpenedModel> like, MakeValues make);

}  // namespace loom::core
