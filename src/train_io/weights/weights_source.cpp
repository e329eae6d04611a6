#include "train_io/weights/weights_source.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "bridge/entity_network.hpp"
#include "bridge/network_json.hpp"
#include "train_io/weights/training_parts.hpp"

namespace loom::core {
namespace {

class TrainedSource : public NetworkSource {
 public:
  TrainedSource(TrainedModel model, WeightsFile file);
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  void add_training();

  TrainedModel model_;
  WeightsFile file_;
};

Shape shape_of(const SafeTensor& t) {
  Shape shape;
  for (size_t i = t.shape.size(); i-- > 0 && t.shape.size() <= Shape::kMaxRank;)
    shape = shape.after(t.shape[i]);
  return shape;
}

TrainedSource::TrainedSource(TrainedModel model, WeightsFile file)
    : NetworkSource(model.network), model_(std::move(model)), file_(std::move(file)) {
  path = file_.path;
  dtype = dtype_name(model_.dtype);
  add_model(model_, sections, blobs);
  add_training();
}

// A checkpoint's run, and every tensor of its state.
void TrainedSource::add_training() {
  JsonValue training = JsonValue::object();
  for (const char* key : {"options", "progress", "history"}) {
    const Result<std::string> text = file_.text(key);
    if (text.ok()) training.add(key, JsonValue::string(*text));
  }
  if (training.members().empty()) return;
  sections.add("training", std::move(training));
  for (const SafeTensor& t : file_.tensors.tensors()) {
    if (t.name.front() != '(') continue;
    EntityOutput out;
    out.path = cat("state/", t.name);
    out.dtype = t.dtype == SafeDType::u8 ? DType::u8 : DType::f32;
    out.shape = shape_of(t);
    out.data = [data = t.data]() -> Result<std::span<const std::byte>> { return data; };
    blobs.push_back(std::move(out));
  }
}

Result<SourceWeight> TrainedSource::weight(const Param& param) const {
  const SafeTensor* t = file_.tensors.find(param.path);
  if (t == nullptr) return bad_file(cat("has no tensor '", param.path, "'"), path);
  if (!(shape_of(*t) == param.spec.shape)) {
    return bad_file(cat("'", param.path, "' is ", shape_of(*t).str(), ", the network wants ",
                        param.spec.shape.str()),
                    path);
  }
  SourceWeight weight;
  weight.stored = param.spec.matrix() ? param.dtype.value_or(model_.dtype) : DType::f32;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [t, cols](int64_t first, int64_t count, float* out) {
    return SafeTensors::to_f32(*t, first * cols, count * cols, out);
  };
  // Scales were held while training: the same ranges give the same bits.
  const SafeTensor* held = file_.tensors.find(param.path + "/scale");
  if (held != nullptr && param.spec.matrix()) {
    weight.held.resize(static_cast<size_t>(held->count()));
    LOOM_TRY(SafeTensors::to_f32(*held, 0, held->count(), weight.held.data()));
    weight.held_dtype = weight.stored;
  }
  return weight;
}

}  // namespace

Result<std::unique_ptr<NetworkSource>> open_trained_weights(const FileRef& path) {
  LOOM_ASSIGN(WeightsFile file, open_weights(path));
  LOOM_ASSIGN(TrainedModel model, read_model(file));
  return std::unique_ptr<NetworkSource>(
      std::make_unique<TrainedSource>(std::move(model), std::move(file)));
}

Status save_trained_entity(const std::string& path, const TrainedModel& model, Trainer& trainer) {
  JsonValue header = JsonValue::object();
  std::vector<EntityOutput> blobs, params;
  add_network(model.network, trainer.network(), header, params);
  add_model(model, header, blobs);
  for (EntityOutput& param : params) blobs.push_back(std::move(param));
  return write_entity(path, header, blobs);
}

Status save_checkpoint_entity(const std::string& path, const TrainedModel& model, Trainer& trainer,
                              const SafeMetadata& about, const std::string& keep) {
  JsonValue header = JsonValue::object();
  std::vector<EntityOutput> blobs, params;
  add_network(model.network, trainer.network(), header, params);
  add_model(model, header, blobs);
  JsonValue training = JsonValue::object();
  for (const auto& [key, value] : about) training.add(key, JsonValue::string(value));
  header.add("training", std::move(training));
  for (const StateTensor& state : trainer.step().state())
    blobs.push_back(tensor_output(cat("state/", state.name), state.tensor));
  for (EntityOutput& param : params) blobs.push_back(std::move(param));
  return write_entity(path, header, blobs, {}, keep);
}

}  // namespace loom::core
