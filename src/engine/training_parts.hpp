// What files of weights and checkpoints share. Private to the room.
#pragma once

#include "engine/training_files.hpp"
#include "io/safetensors_write.hpp"

namespace loom {

SafeOutput state_output(const StateTensor& state);
SafeMetadata model_metadata(const TrainedModel& model, std::string_view form);
void add_normalization(const TrainedModel& model, std::vector<SafeOutput>& tensors);
// Reads one tensor of the training state from a file.
Status fill_state(const SafeTensors& tensors, const StateTensor& state, const std::string& where);

}  // namespace loom
