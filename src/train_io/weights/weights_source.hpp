// Trained weights and checkpoints (training_files.hpp) as a NetworkSource, and what of them goes
// into an .entity file: the section "model" (dtype, loss, classes; blobs input/shift, input/scale),
// and for checkpoints "training" with the state of the optimizer in blobs state/.
#pragma once

#include "bridge/network_source.hpp"
#include "io/files/file_ref.hpp"
#include "io/weights/safetensors_write.hpp"
#include "train_io/training_files.hpp"

namespace loom::core {

// The section "model" and the blobs of the normalization; `model` must outlive the writing.
void add_model(const TrainedModel& model, JsonValue& header, std::vector<EntityOutput>& blobs);
Result<std::unique_ptr<NetworkSource>> open_trained_weights(const FileRef& path);
// The network of `trainer` as it is packed now, with what it was trained for.
Status save_trained_entity(const std::string& path, const TrainedModel& model, Trainer& trainer);
// The same with the run (`about`: options, progress, history) and the state of the optimizer.
Status save_checkpoint_entity(const std::string& path, const TrainedModel& model, Trainer& trainer,
                              const SafeMetadata& about, const std::string& keep);

}  // namespace loom::core
