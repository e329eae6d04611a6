// What the handles of networks, data sets and their users hold, and how public values become those
// of the rooms below. Private to the room.
#pragma once

#include <functional>
#include <mutex>

#include "api/impl.hpp"
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
  bool trained = false;  // model.loss says what for
  // The weights are still those of `seed`: who trains starts from them as they were before packing.
  bool fresh = true;
  // The file that the weights are from, as long as nothing changed them: it may hold more than what
  // was packed from it (masters, the ranges of scales), which training goes on from.
  std::shared_ptr<const core::NetworkSource> origin;
  // A trainer has newer weights; this fetches them. Set and cleared by it.
  std::function<Status()> refresh;

  // The weights, up to date. What it points to never changes: others take its place.
  Result<std::shared_ptr<const core::Network>> weights();
  void set_weights(core::Network network);
  // The proof of the weights of now; null: there is none. New weights have none.
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
  std::optional<core::SplitRecord> split;  // where it is a part of a larger one
  core::MemoryShare memory;
  core::MemoryBudget budget{};                // that copies of the samples are booked in
  std::string path{};                         // of the file, for messages
  std::vector<std::string> files{};           // of the samples, where each is a file of its own
  std::optional<core::MediaReading> media{};  // how they were read
  core::TableColumns columns{};               // of the table that they are from
};
#endif

}  // namespace loom

namespace loom::core {

// Errors: invalid_argument (too many axes, an extent below 1). `what` for the message.
Result<Shape> core_shape(const loom::Shape& shape, std::string_view what);
// Answers about a state dict. Errors: invalid_argument (an extent below 1).
Result<InferOptions> infer_options(const StateDictOptions& options);
loom::Shape public_shape(const Shape& shape);
loom::Shape without_batch(const Shape& shape);

// Whether several samples can be computed at once. Files of others may hold extents that only fit
// one.
bool takes_batches(const Network& network);
// Inputs and outputs as callers know them.
std::vector<PortInfo> input_ports(const Network& network);
std::vector<PortInfo> output_ports(const Network& network);

// With the batch axis in front; the steps of sequences may be fewer than the network was made for.
Result<Shape> batch_shape(const Network& network, const loom::Tensor& inputs);
// Inputs as the network takes them, contiguous: float32 that are normalized, or int32 ids.
Result<loom::Tensor> prepared_inputs(const Network& network, const Normalization& normalization,
                                     const loom::Tensor& inputs);
// Whole numbers of any type as int32, each below `limit`. who: what the message calls them.
Result<loom::Tensor> ids_below(int64_t limit, const loom::Tensor& inputs, std::string_view who);
// The same of an input besides the first, for so many samples.
Result<loom::Tensor> prepared_more(const InputSpec& spec, const loom::Tensor& input,
                                   int64_t samples);

// The number type that most values of the matrices have, those of cells with a type of their own
// left out as long as there are others; `otherwise` where there is no matrix.
DType matrix_dtype(const Network& network, DType otherwise);

// A copy with memory of its own.
Result<Network> clone_network(const NetworkSpec& spec, const Network& network);

// The weights of a network in memory, for whatever is done with them next.
class LoadedSource : public NetworkSource {
 public:
  LoadedSource(const TrainedModel& model, bool trained, std::shared_ptr<const Network> network);
  bool in_memory() const override { return true; }
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  TrainedModel model_;  // its normalization is what the blobs hold
  std::shared_ptr<const Network> network_;
};

}  // namespace loom::core
