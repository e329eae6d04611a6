#include "bridge/network_source.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "bridge/entity_network.hpp"
#include "bridge/network_json.hpp"
#include "bridge/proof.hpp"
#include "dtype/dtype_tally.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kShift = "input/shift", kScale = "input/scale";

class EntityNetworkSource : public NetworkSource {
 public:
  EntityNetworkSource(NetworkSpec spec, std::shared_ptr<const Entity> file);
  Result<SourceWeight> weight(const Param& param) const override {
    return entity_weight(*file_, param);
  }

 private:
  std::shared_ptr<const Entity> file_;
};

EntityNetworkSource::EntityNetworkSource(NetworkSpec s, std::shared_ptr<const Entity> file)
    : NetworkSource(std::move(s)), file_(std::move(file)) {
  path = file_->where();
  for (const auto& [key, value] : file_->header().members()) {
    if (key != "network") sections.add(key, value);
  }
  DTypeTally matrices;
  for (size_t i = 0; i < file_->blobs().size(); ++i) {
    const EntityBlob& blob = file_->blobs()[i];
    if (blob.layout == BlobLayout::r16 && blob.path.front() == '(')
      matrices.add(blob.dtype, blob.shape.count());
    if (blob.path.front() == '(') continue;
    EntityOutput out;
    out.path = blob.path;
    out.layout = blob.layout;
    out.dtype = blob.dtype;
    out.shape = blob.shape;
    out.data = [file = file_.get(), i]() -> Result<std::span<const std::byte>> {
      LOOM_TRY(file->verify(i));
      return file->bytes(i);
    };
    blobs.push_back(std::move(out));
  }
  if (!matrices.empty()) dtype = dtype_name(matrices.most());
}

// The section "model" of a network with matrices `params`; it names their type.
JsonValue with_dtype_of(const std::vector<EntityOutput>& params, const JsonValue& section) {
  DTypeTally matrices;
  for (const EntityOutput& param : params) {
    if (param.layout == BlobLayout::r16) matrices.add(param.dtype, param.shape.count());
  }
  if (matrices.empty()) return section;
  JsonValue out = JsonValue::object();
  for (const auto& [key, value] : section.members()) {
    const bool named = key == "dtype";
    out.add(key, named ? JsonValue::string(std::string(dtype_name(matrices.most()))) : value);
  }
  return out;
}

// Whether the parameters are written unchanged: a proof covers their exact bits.
Result<bool> written_as_stored(const Network& network, const NetworkSource& source,
                               const PackPolicy& policy) {
  for (const Param& param : network.params()) {
    LOOM_ASSIGN(const SourceWeight weight, source.weight(param));
    if (param.spec.matrix() && policy.dtype(param, weight.stored) != weight.stored) return false;
  }
  return true;
}

}  // namespace

Result<SourceWeight> MemorySource::weight(const Param& param) const {
  const auto found = values.find(param.path);
  if (found == values.end()) return bad_file(cat("has no values for ", param.path), path);
  const std::vector<float>& all = found->second;
  if (static_cast<int64_t>(all.size()) != param.spec.shape.count()) {
    return bad_file(cat(param.path, " has ", all.size(), " values, its shape ",
                        param.spec.shape.str(), " needs ", param.spec.shape.count()),
                    path);
  }
  SourceWeight weight;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [&all, cols](int64_t first, int64_t count, float* out) -> Status {
    std::copy_n(all.data() + first * cols, count * cols, out);
    return {};
  };
  return weight;
}

Result<Normalization> normalization_of(const NetworkSource& source) {
  Normalization out;
  for (const EntityOutput& blob : source.blobs) {
    if (blob.path != kShift && blob.path != kScale) continue;
    if (blob.dtype != DType::f32 || blob.layout != BlobLayout::plain)
      return bad_file(cat(blob.path, " must hold float32 values"), source.path);
    LOOM_ASSIGN(const std::span<const std::byte> bytes, blob.data());
    std::vector<float>& to = blob.path == kShift ? out.shift : out.scale;
    to.resize(bytes.size() / sizeof(float));
    std::memcpy(to.data(), bytes.data(), to.size() * sizeof(float));
  }
  if (out.shift.size() != out.scale.size())
    return bad_file("input/shift and input/scale differ in size", source.path);
  return out;
}

void keep_normalization(Normalization normalization, NetworkSource& source) {
  if (normalization.empty()) return;
  const auto keep = [&](std::string_view path, std::vector<float>&& values) {
    EntityOutput out;
    out.path = path;
    out.shape = Shape{static_cast<int64_t>(values.size())};
    out.data = [held = std::make_shared<const std::vector<float>>(std::move(values))]()
        -> Result<std::span<const std::byte>> { return std::as_bytes(std::span(*held)); };
    source.blobs.push_back(std::move(out));
  };
  keep(kShift, std::move(normalization.shift));
  keep(kScale, std::move(normalization.scale));
}

Result<std::unique_ptr<NetworkSource>> open_network_entity(std::shared_ptr<const Entity> file) {
  LOOM_ASSIGN(NetworkSpec spec, entity_spec(*file));
  return std::unique_ptr<NetworkSource>(
      std::make_unique<EntityNetworkSource>(std::move(spec), std::move(file)));
}

Status save_network(const FileRef& path, const NetworkSource& source,
                    const SaveNetworkOptions& options, ThreadPool& pool) {
  LOOM_ASSIGN(Network network, Network::finalize(source.spec.grid, source.spec.input.after(1)));
  PackPolicy policy = options.policy;
  if (!policy.dtype) policy.dtype = [](const Param&, DType stored) { return stored; };
  bool proven = source.sections.find(kProofSection) != nullptr;
  if (proven) {
    LOOM_ASSIGN(proven, written_as_stored(network, source, policy));
  }
  LOOM_ASSIGN(std::vector<EntityOutput> params, packed_outputs(network, source, policy, pool));
  JsonValue header = JsonValue::object();
  header.add("network", network_json(source.spec));
  for (const auto& [key, value] : source.sections.members()) {
    if (key != kProofSection || proven)
      header.add(key, key == "model" ? with_dtype_of(params, value) : value);
  }
  std::vector<EntityOutput> blobs;
  for (const EntityOutput& blob : source.blobs) {
    if (proven || !blob.path.starts_with(kProofFolder)) blobs.push_back(blob);
  }
  for (EntityOutput& param : params) blobs.push_back(std::move(param));
  return write_entity(path, header, blobs, options.progress);
}

}  // namespace loom::core
