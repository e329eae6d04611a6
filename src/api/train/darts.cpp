// Architecture search by gradients: passes samples to evolve/networks/darts.hpp, and saves its
// state in a file.
#include "loom/darts.hpp"

#include <cmath>
#include <cstdlib>

#include "api/engine/impl.hpp"
#include "api/network/network_impl.hpp"
#include "api/train/scored_data.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "evolve/networks/darts.hpp"
#include "io/files/foreign_file.hpp"
#include "train_io/weights/training_parts.hpp"

namespace loom::core {

// The state of a search in its file.
struct DartsFields {
  DartsSpec spec;
  double validation = 0.5;
  int64_t normalize = 1, seed_parameters = 0;
};

namespace {

constexpr std::string_view kDartsForm = "darts 1";

// One visitor lists all numbers of a search, for the writer and the reader.
template <class Fields, class F>
Status visit_darts(Fields& s, F&& f) {
  LOOM_TRY(f("order", s.spec.order));
  LOOM_TRY(f("epochs", s.spec.epochs));
  LOOM_TRY(f("batch", s.spec.batch));
  LOOM_TRY(f("rate", s.spec.rate));
  LOOM_TRY(f("least_rate", s.spec.min_rate));
  LOOM_TRY(f("decay", s.spec.decay));
  LOOM_TRY(f("clip", s.spec.clip));
  LOOM_TRY(f("alpha_rate", s.spec.alpha_rate));
  LOOM_TRY(f("alpha_decay", s.spec.alpha_decay));
  LOOM_TRY(f("validation", s.validation));
  LOOM_TRY(f("normalize", s.normalize));
  return f("seed_parameters", s.seed_parameters);
}

class FieldWriter {
 public:
  explicit FieldWriter(JsonValue& out) : out_(out) {}
  Status operator()(const char* name, int64_t v) {
    out_.add(name, JsonValue::integer(v));
    return {};
  }
  Status operator()(const char* name, double v) {
    out_.add(name, JsonValue::real(v));
    return {};
  }

 private:
  JsonValue& out_;
};

class FieldReader {
 public:
  FieldReader(const JsonValue& from, const std::string& where) : from_(from), where_(where) {}
  Status operator()(const char* name, int64_t& v) {
    LOOM_ASSIGN(const JsonValue* value, need(name));
    LOOM_ASSIGN(v, value->as_int(cat(where_, ": ", name)));
    return {};
  }
  Status operator()(const char* name, double& v) {
    LOOM_ASSIGN(const JsonValue* value, need(name));
    LOOM_ASSIGN(v, value->as_double(cat(where_, ": ", name)));
    return {};
  }

 private:
  Result<const JsonValue*> need(const char* name) const {
    const JsonValue* value = from_.find(name);
    if (value == nullptr) return bad_file(cat("a search needs \"", name, "\""), where_);
    return value;
  }
  const JsonValue& from_;
  const std::string& where_;
};

JsonValue epoch_json(const DartsEpoch& e) {
  JsonValue out = JsonValue::object(), cells = JsonValue::array();
  out.add("train_loss", JsonValue::real(e.train_loss));
  out.add("validation_loss", JsonValue::real(e.validation_loss));
  if (e.accuracy) out.add("accuracy", JsonValue::real(*e.accuracy));
  for (const std::vector<double>& weights : e.weights) {
    JsonValue list = JsonValue::array();
    for (const double w : weights) list.push(JsonValue::real(w));
    cells.push(std::move(list));
  }
  out.add("weights", std::move(cells));
  return out;
}

// A loss that is not a number is stored as null.
Result<double> loss_of(const JsonValue& of, const char* key, const std::string& where) {
  const JsonValue* value = of.find(key);
  if (value == nullptr) return bad_file(cat("an epoch needs \"", key, "\""), where, of.offset());
  if (value->is_null()) return std::nan("");
  return value->as_double(cat(where, ": ", key));
}

Result<DartsEpoch> read_epoch(const JsonValue& of, const std::vector<MixedCell>& cells,
                              const std::string& where) {
  DartsEpoch e;
  LOOM_ASSIGN(e.train_loss, loss_of(of, "train_loss", where));
  LOOM_ASSIGN(e.validation_loss, loss_of(of, "validation_loss", where));
  if (of.find("accuracy") != nullptr) {
    LOOM_ASSIGN(e.accuracy, loss_of(of, "accuracy", where));
  }
  const JsonValue* all = of.find("weights");
  if (all == nullptr || all->elements().size() != cells.size())
    return bad_file("an epoch needs weights for every mixed cell", where, of.offset());
  for (size_t i = 0; i < cells.size(); ++i) {
    std::vector<double>& weights = e.weights.emplace_back();
    for (const JsonValue& w : all->elements()[i].elements()) {
      LOOM_ASSIGN(const double weight, w.as_double(cat(where, ": weights")));
      weights.push_back(weight);
    }
    if (weights.size() != cells[i].branches.size())
      return bad_file("an epoch needs a weight for every branch", where, of.offset());
  }
  return e;
}

DartsFields fields_of(const DartsOptions& o) {
  DartsFields f;
  f.spec.order = o.order;
  f.spec.epochs = o.epochs;
  f.spec.batch = o.batch;
  f.spec.seed = o.seed;
  f.spec.rate = o.rate;
  f.spec.min_rate = o.rate / 25;
  f.spec.decay = o.decay;
  f.spec.alpha_rate = o.alpha_rate;
  f.spec.alpha_decay = o.alpha_decay;
  f.validation = o.validation;
  f.normalize = static_cast<int64_t>(o.normalize);
  return f;
}

}  // namespace
}  // namespace loom::core

namespace loom {

struct DartsSearch::Impl {
  std::optional<Engine> engine;
  core::DartsFields fields;
  core::GridGenome mixed;
  core::ScoredData data;
  std::string data_hash;
  std::optional<core::Darts> search;

  Status begin(const Dataset& samples, const std::optional<Engine>& on);
  Result<core::BranchChoice> choose(int64_t most) const {
    return core::choose_branches(mixed, search->weights(), most);
  }
};

Status DartsSearch::Impl::begin(const Dataset& samples, const std::optional<Engine>& on) {
  if (!(fields.validation > 0 && fields.validation < 1))
    return core::invalid(
        core::cat("validation is ", fields.validation, ", must be between 0 and 1"));
  if (fields.normalize == static_cast<int64_t>(Normalize::as_trained))
    return core::invalid("there is no training to normalize as; choose none, standard or range");
  LOOM_ASSIGN(Engine chosen, core::engine_or_shared(on));
  engine = chosen;
  data_hash = core::hash_dataset(samples.impl().data);
  LOOM_ASSIGN(data,
              core::split_scored(samples, fields.validation, fields.spec.seed, fields.normalize));
  LOOM_ASSIGN(search, core::Darts::create(mixed, data.train, data.held, fields.spec,
                                          *engine->impl().ops, engine->impl().pool));
  return {};
}

Result<DartsSearch> DartsSearch::create(const Network& net, const Dataset& data,
                                        const DartsOptions& options,
                                        const std::optional<Engine>& engine) {
  auto impl = std::make_shared<Impl>();
  impl->fields = core::fields_of(options);
  LOOM_ASSIGN(const core::GridGenome seed, core::GridGenome::of(net.impl().model.network));
  if (core::mixed_cells(seed).empty()) {
    LOOM_ASSIGN(const core::Network row, seed.finalized(1));
    impl->fields.seed_parameters = row.param_count();
  }
  LOOM_ASSIGN(impl->mixed, core::mixed_genome(seed));
  LOOM_TRY(impl->begin(data, engine));
  return DartsSearch(std::move(impl));
}

namespace {

Result<DartsSearch> read_search(const std::string& path, const Dataset& data,
                                const std::optional<Engine>& engine) {
  LOOM_ASSIGN(const core::WeightsFile file, core::open_weights(path));
  LOOM_ASSIGN(const std::string form, file.text("loom"));
  if (form != core::kDartsForm)
    return core::bad_file("this is not an architecture search of loom darts", path);
  LOOM_TRY(core::check_digest(file));
  auto impl = std::make_shared<DartsSearch::Impl>();
  LOOM_ASSIGN(const std::string network, file.text("network"));
  LOOM_ASSIGN(const core::NetworkSpec spec, core::parse_network(network, path + ": network"));
  LOOM_ASSIGN(impl->mixed, core::GridGenome::of(spec));
  LOOM_ASSIGN(const std::string text, file.text("search"));
  LOOM_ASSIGN(const core::JsonValue about, core::parse_json(text, path + ": search"));
  LOOM_TRY(core::visit_darts(impl->fields, core::FieldReader(about, path)));
  LOOM_TRY(core::check_darts(impl->fields.spec));
  LOOM_ASSIGN(const std::string seed, file.text("seed"));
  impl->fields.spec.seed = std::strtoull(seed.c_str(), nullptr, 10);
  if (core::cat(impl->fields.spec.seed) != seed)
    return core::bad_file(core::cat("has seed ", core::printable(seed)), path);
  LOOM_TRY(impl->begin(data, engine));
  LOOM_ASSIGN(const std::string hash, file.text("data"));
  if (hash != impl->data_hash)
    return core::bad_file(
        "was made with other samples, or its hash of them is damaged; give the same DATA", path);
  for (const core::StateTensor& state : impl->search->state())
    LOOM_TRY(core::fill_state(file, state));
  const core::JsonValue* past = about.find("history");
  const core::JsonValue* updates = about.find("updates");
  if (past == nullptr || updates == nullptr)
    return core::bad_file("a search needs \"history\" and \"updates\"", path);
  std::vector<core::DartsEpoch> history;
  const std::vector<core::MixedCell> cells = core::mixed_cells(impl->mixed);
  for (const core::JsonValue& item : past->elements()) {
    LOOM_ASSIGN(core::DartsEpoch e, core::read_epoch(item, cells, path));
    e.epoch = static_cast<int64_t>(history.size()) + 1;
    history.push_back(std::move(e));
  }
  LOOM_ASSIGN(const int64_t done, updates->as_int(path + ": updates"));
  if (done < 0) return core::bad_file("updates is negative", path);
  LOOM_TRY(impl->search->restored(std::move(history), done));
  return DartsSearch(std::move(impl));
}

}  // namespace

Result<DartsSearch> DartsSearch::load(const std::string& path, const Dataset& data,
                                      const std::optional<Engine>& engine) {
  Result<DartsSearch> search = read_search(path, data, engine);
  return search.ok() ? search : core::file_error(search.error(), path);
}

Status DartsSearch::save(const std::string& path) const {
  core::JsonValue about = core::JsonValue::object(), past = core::JsonValue::array();
  LOOM_TRY(core::visit_darts(impl_->fields, core::FieldWriter(about)));
  for (const core::DartsEpoch& e : impl_->search->history()) past.push(core::epoch_json(e));
  about.add("history", std::move(past));
  about.add("updates", core::JsonValue::integer(impl_->search->updates()));
  LOOM_ASSIGN(const core::NetworkSpec spec, impl_->mixed.spec());
  core::SafeMetadata metadata = {{"loom", std::string(core::kDartsForm)},
                                 {"network", core::write_network(spec)},
                                 {"search", core::dump_json(about)},
                                 {"seed", core::cat(impl_->fields.spec.seed)},
                                 {"data", impl_->data_hash}};
  core::add_digest(metadata);
  std::vector<core::SafeOutput> tensors;
  for (const core::StateTensor& state : impl_->search->state())
    tensors.push_back(core::state_output(state));
  return core::write_safetensors(path, std::move(tensors), metadata);
}

Result<DartsReport> DartsSearch::step(const std::function<bool(int64_t, int64_t)>& on_step) {
  const std::lock_guard<std::mutex> turn(impl_->engine->impl().turn);
  if (epoch() >= epochs())
    return core::invalid(core::cat("the search is done: all ", epochs(), " epochs ran"));
  LOOM_ASSIGN(const core::DartsEpoch e, impl_->search->epoch(on_step));
  return DartsReport{e.epoch, e.train_loss, e.validation_loss, e.accuracy, e.weights};
}

int64_t DartsSearch::epoch() const {
  return static_cast<int64_t>(impl_->search->history().size());
}
int64_t DartsSearch::epochs() const {
  return impl_->fields.spec.epochs;
}
int64_t DartsSearch::seed_parameters() const {
  return impl_->fields.seed_parameters;
}

std::vector<DartsReport> DartsSearch::history() const {
  std::vector<DartsReport> out;
  for (const core::DartsEpoch& e : impl_->search->history())
    out.push_back({e.epoch, e.train_loss, e.validation_loss, e.accuracy, e.weights});
  return out;
}

std::vector<DartsCell> DartsSearch::cells() const {
  std::vector<DartsCell> out;
  const std::vector<std::vector<double>> weights = impl_->search->weights();
  for (const core::MixedCell& cell : core::mixed_cells(impl_->mixed))
    out.push_back({static_cast<int64_t>(cell.cell), cell.branches, weights[out.size()]});
  return out;
}

Result<std::vector<int64_t>> DartsSearch::choice(int64_t most_parameters) const {
  LOOM_ASSIGN(const core::BranchChoice best, impl_->choose(most_parameters));
  return std::vector<int64_t>(best.branches.begin(), best.branches.end());
}

Result<Network> DartsSearch::found(int64_t most_parameters) const {
  LOOM_ASSIGN(const core::BranchChoice best, impl_->choose(most_parameters));
  return core::network_of(core::decided(impl_->search->genome(), best), impl_->data,
                          impl_->fields.spec.seed, impl_->engine);
}

}  // namespace loom
