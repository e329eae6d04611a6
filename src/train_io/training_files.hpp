// Files of training, safetensors or .entity:
//   weights      the parameters by path as f32 masters, and PATH/scale, the ranges that scales of
//                packed weights were taken from; metadata: the network, its number type, the loss,
//                the names of classes, how samples were held out; tensors input/shift and
//                input/scale where inputs were normalized. Enough to evaluate without anything
//                else.
//   checkpoints  the same, with the optimizer's state, the progress, the options of the run and its
//                history: a run that goes on from one gives the bits of a run that never stopped.
#pragma once

#include "bridge/network_source.hpp"
#include "io/files/file_ref.hpp"
#include "io/weights/safetensors.hpp"
#include "learn/data/split.hpp"
#include "learn/trainer.hpp"
#include "train_io/dataset_files.hpp"

namespace loom::core {

// The samples that training held out, and the hash of their data set (hash_dataset, before
// normalizing). Later evaluations separate them from the samples of training.
struct SplitRecord {
  SplitSpec spec;
  std::string data;
};

struct TrainedModel {
  NetworkSpec network;
  DType dtype = DType::f32;
  LossSpec loss;
  std::vector<std::string> names;  // of classes
  Normalization normalization;
  std::optional<SplitRecord> split = {};
  std::optional<MediaReading> media = {};  // how its images or sounds were read
  TableColumns columns = {};               // of the table that it was trained with
  std::string recipe = {};                 // epochs and options of training, a JSON object
};

// The averages of the weights, where the trainer keeps some. A name that ends in .entity: the
// network as it is packed (weights_source.hpp); else safetensors.
Status save_weights(const std::string& path, const TrainedModel& model, Trainer& trainer);

// The plan of a table, of a network that was not trained yet.
void add_plan(const TableColumns& columns, JsonValue& sections);
// The description of a network, with the plan of its table if it has one.
std::string description_text(const NetworkSpec& network, const TableColumns& columns);

struct WeightsFile {
  std::string path;
  SafeTensors tensors;
  std::shared_ptr<const Entity> entity;  // where the file is one
  // Metadata of that name, or the Error that it is absent.
  Result<std::string> text(std::string_view name) const;
};
Result<WeightsFile> open_weights(const FileRef& path);
// Reads the metadata. Errors: bad_file if the file is not ours.
Result<TrainedModel> read_model(const WeightsFile& file);
// The training task of a network from any file (its section "model" and blobs input/). If the file
// does not state it: classes, no normalization.
Result<TrainedModel> model_of(const NetworkSource& source);
// Fills the parameters of `trainer`; the Error names the first that is absent or of another shape.
// Matrices that the file holds in the number type of the trainer get its very codes and scales;
// held ranges may be absent, and count only for the number type they belong to.
Status load_weights(const WeightSource& source, Trainer& trainer);
// XXH3-128 of all parameters as f32 masters, in their order.
Result<std::string> hash_weights(Trainer& trainer);

// Everything that decides the bits of a run, besides the network: a flat object.
JsonValue run_options(const TrainerSpec& options, const Dataset& train, const Dataset& validation);

struct RecordedRun {
  JsonValue options;  // of run_options()
  std::vector<EpochReport> history;
  int64_t planned_epochs = 0;  // of the loaded checkpoint, if its schedule depends on them
};
// Keeps the checkpoint before this one as PATH.previous.
Status save_checkpoint(const std::string& path, const TrainedModel& model, Trainer& trainer,
                       const RecordedRun& run);
// Fills `trainer` and run.history. When PATH is damaged or absent, PATH.previous is taken; returns
// the file that was. Refuses a checkpoint of another network or other options, naming what differs;
// the number of epochs may differ.
Result<std::string> load_checkpoint(const std::string& path, const TrainedModel& model,
                                    Trainer& trainer, RecordedRun& run);

}  // namespace loom::core
