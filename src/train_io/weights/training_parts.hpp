// Code that files of weights and checkpoints share. Private to the room.
#pragma once

#include "io/weights/safetensors_write.hpp"
#include "learn/loss/loss.hpp"
#include "train_io/bits_hash.hpp"
#include "train_io/training_files.hpp"

namespace loom::core {

SafeOutput state_output(const StateTensor& state);
SafeMetadata model_metadata(const TrainedModel& model, std::string_view form);
void add_normalization(const TrainedModel& model, std::vector<SafeOutput>& tensors);
JsonValue option_json(const LossSpec& loss, const LossOption& option);
JsonValue loss_json(const LossSpec& loss);
Result<LossSpec> read_loss(const JsonValue& json, const std::string& where);
JsonValue names_json(const std::vector<std::string>& names);
JsonValue columns_json(const TableColumns& columns);
Result<TableColumns> read_columns(const JsonValue& json, const std::string& where);
// Adds what hash_dataset() is made of.
void add_dataset(const Dataset& data, BitsHash& hash);
JsonValue split_json(const SplitRecord& split);
Result<SplitRecord> read_split(const JsonValue& json, const std::string& where);
// The parameter of a tensor of the training state, which is its master or the ranges of its scales;
// -1 for state of the optimizer.
int param_of(const Network& network, std::string_view name);
// Reads one tensor of the training state from a file.
Status fill_state(const WeightsFile& file, const StateTensor& state);
// Adds a hash of the texts before it. safetensors has none, and a flipped bit in a text would be
// another option of the run.
void add_digest(SafeMetadata& metadata);
// Errors: bad_file (the texts are not those that were saved). A file without a digest is not
// checked.
Status check_digest(const WeightsFile& file);

}  // namespace loom::core
