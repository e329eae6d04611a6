// The state of networks, data sets and their users, and conversions between public values and lower
// rooms. Private to the room.
#pragma once

#include <functional>
#include <mutex>

#include "api/engine/impl.hpp"
#include "bridge/proof.hpp"
#include "formats/universal/infer_options.hpp"
#include "loom/dataset.hpp"
#include "loom/network.hpp"
#include "train_io/training_files.hpp"

namespace loom {

struct Network::Impl {
  Impl(Engine on, core::TrainedModel what) : engine(std::move(on)), model(std::move(what)) {}

  Engine engine;
  core::TrainedModel model;
  uint64_t seed = 1;
  bool trained = false;  // model.loss has the loss
  // The weights are still those of `seed`: training starts from their values before packing.
  bool fresh = true;
  // The file of the weights, while they are unchanged. It may hold more than the packed weights
  // (masters, the ranges of scales), from which training continues.
  std::shared_ptr<const core::NetworkSource> origin;
  // A trainer has newer weights; this fetches them. The trainer sets and clears it.
  std::function<Status()> refresh;

  // The current weights. The object never changes: new weights replace it.
  Result<std::shared_ptr<const core::Network>> weights();
  void set_weights(core::Network network);
  // The proof of the current weights; may be null. New weights have none.
  Result<std::shared_ptr<const core::ProofRecord>> proof();
  void set_proof(std::shared_ptr<const core::ProofRecord> proof);

 private:
  std::mutex mutex_;
  std::shared_ptr<const core::ProofRecord> proof_;
  std::shared_ptr<const core::Network> weights_;
};

#ifndef LOOM_MINIMAL
struct Dataset::Impl {
  core::Dataset data;
  std::vector<std::string> classes, notes;
  std::optional<core::SplitRecord> split;  // if it is a part of a larger one
  core::MemoryShare memory;
  core::MemoryBudget budget{};                // charged for copies of the samples
  std::string path{};                         // of the file, for messages
  std::vector<std::string> files{};           // of the samples, if each is a separate file
  std::optional<core::MediaReading> media{};  // how they were read
  core::TableColumns columns{};               // of their source table
};
#endif

}  // namespace loom

namespace loom::core {

// Errors: invalid_argument (too many axes, an extent below 1). `what` for the message.
Result<Shape> core_shape(const loom::Shape& shape, std::string_view what);
// Settings of a state dict. Errors: invalid_argument (an extent below 1).
Result<InferOptions> infer_options(const StateDictOptions& options);
loom::Shape public_shape(const Shape& shape);
loom::Shape without_batch(const Shape& shape);

// Whether several samples can be computed at once. Imported files may have extents that fit only
// one.
bool takes_batches(const Network& network);
// Inputs and outputs for callers.
std::vector<PortInfo> input_ports(const Network& network);
std::vector<PortInfo> output_ports(const Network& network);

// With a leading batch axis; sequences may have fewer steps than the network was made for.
Result<Shape> batch_shape(const Network& network, const loom::Tensor& inputs);
// Inputs in the network's form, contiguous: normalized float32, or int32 ids.
Result<loom::Tensor> prepared_inputs(const Network& network, const Normalization& normalization,
                                     const loom::Tensor& inputs);
// Integers of any type as int32, each below `limit`. who: their name in the message.
Result<loom::Tensor> ids_below(int64_t limit, const loom::Tensor& inputs, std::string_view who);
// The same for an input besides the first, for that many samples.
Result<loom::Tensor> prepared_more(const InputSpec& spec, const loom::Tensor& input,
                                   int64_t samples);

// The most frequent number type of matrix values; cells with their own type count only if there are
// no others. `otherwise` if there is no matrix.
DType matrix_dtype(const Network& network, DType otherwise);

// A copy with its own memory.
Result<Network> clone_network(const NetworkSpec& spec, const Network& network);

// The weights of a network in memory, as a source.
class LoadedSource : public NetworkSource {
 public:
  LoadedSource(const TrainedModel& model, bool trained, std::shared_ptr<const Network> network);
  bool in_memory() const override { return true; }
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  TrainedModel model_;  // its normalization is what the blobs store
  std::shared_ptr<const Network> network_;
};

}  // namespace loom::core
