#include "evolve/merging/made_weights.hpp"

#include "bridge/network_source.hpp"
#include "bridge/proof.hpp"

namespace loom::core {
namespace {

// The values of one parameter at a time: readers take a parameter's rows in pieces, maybe twice.
struct LatestValues {
  MakeValues make;
  std::string path;  // of the parameter with these values; empty if none
  std::vector<float> values;

  Status fill(const Param& param) {
    if (path == param.path) return {};
    path.clear();
    LOOM_TRY(make(param, values));
    path = param.path;
    return {};
  }
};

// A parameter outlives the network in which a reader found it, so its data is copied here.
struct OwnParam {
  explicit OwnParam(const Param& p)
      : spec(p.spec), param{p.path, spec, {}, p.dtype, {}, p.cell, p.child} {}
  ParamSpec spec;
  Param param;
};

Result<SourceWeight> made_weight(const std::shared_ptr<LatestValues>& latest,
                                 const WeightSource& like, const Param& param) {
  LOOM_ASSIGN(const SourceWeight stored, like.weight(param));
  SourceWeight weight;
  weight.stored = stored.stored;
  weight.mean_scope = stored.mean_scope;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [latest, cols, own = std::make_shared<OwnParam>(param)](
                    int64_t first, int64_t count, float* out) -> Status {
    LOOM_TRY(latest->fill(own->param));
    std::copy_n(latest->values.begin() + first * cols, count * cols, out);
    return {};
  };
  return weight;
}

class MadeModel : public ModelSource {
 public:
  MadeModel(std::shared_ptr<const OpenedModel> like, MakeValues make)
      : ModelSource(*like->decoder),
        like_(std::move(like)),
        latest_(std::make_shared<LatestValues>(LatestValues{std::move(make), {}, {}})) {}
  Result<SourceWeight> weight(const Param& param) const override {
    return made_weight(latest_, *like_->decoder, param);
  }

 private:
  std::shared_ptr<const OpenedModel> like_;
  std::shared_ptr<LatestValues> latest_;
};

class MadeNetwork : public NetworkSource {
 public:
  MadeNetwork(std::shared_ptr<const OpenedModel> like, MakeValues make)
      : NetworkSource(like->network->spec),
        like_(std::move(like)),
        latest_(std::make_shared<LatestValues>(LatestValues{std::move(make), {}, {}})) {
    const NetworkSource& from = *like_->network;
    path = from.path;
    dtype = from.dtype;
    // A training state belongs to the old weights, and so does a proof.
    for (const auto& [name, section] : from.sections.members()) {
      if (name != "training" && name != kProofSection) sections.add(name, section);
    }
    for (const EntityOutput& blob : from.blobs) {
      if (!blob.path.starts_with("state/") && !blob.path.starts_with(kProofFolder))
        blobs.push_back(blob);
    }
  }
  Result<SourceWeight> weight(const Param& param) const override {
    return made_weight(latest_, *like_->network, param);
  }

 private:
  std::shared_ptr<const OpenedModel> like_;
  std::shared_ptr<LatestValues> latest_;
};

}  // namespace

Result<OpenedModel> made_model(std::shared_ptr<const OpenedModel> like, MakeValues make) {
  OpenedModel out;
  out.format = like->format;
  if (like->decoder != nullptr) {
    out.decoder = std::make_unique<MadeModel>(like, std::move(make));
  } else {
    out.network = std::make_unique<MadeNetwork>(like, std::move(make));
  }
  return out;
}

}  // namespace loom::core
