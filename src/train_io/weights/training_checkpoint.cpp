// Checkpoints of training: see training_files.hpp. Two generations: PATH.previous is the file that
// was PATH before. Both names hold whole files at every moment (AtomicFile::commit); reading falls
// back to PATH.previous when PATH was damaged or lost in another way.
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "io/bytes/hash.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/rule.hpp"
#include "learn/saved_options.hpp"
#include "learn/schedule/fields.hpp"
#include "learn/schedule/schedule.hpp"
#include "loom/augment.hpp"
#include "train_io/weights/training_parts.hpp"
#include "train_io/weights/weights_source.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kForm = "checkpoint 1";
constexpr const char* kEpochs = "epochs";

JsonValue text(std::string_view value) {
  return JsonValue::string(std::string(value));
}
JsonValue real(float value) {
  return JsonValue::real(static_cast<double>(value));
}

std::string hash_data(const Dataset& train, const Dataset& validation) {
  BitsHash hash;
  add_dataset(train, hash);
  add_dataset(validation, hash);
  return hash.hex();
}

std::string dump_heads(const std::vector<int64_t>& heads) {
  std::string all;
  for (const int64_t width : heads) all += cat(all.empty() ? "" : ",", width);
  return all;
}

struct ProgressField {
  const char* name;
  int64_t TrainerProgress::*member;
};
constexpr ProgressField kProgress[] = {{"epoch", &TrainerProgress::epoch},
                                       {"updates", &TrainerProgress::updates},
                                       {"pending", &TrainerProgress::pending},
                                       {"stale", &TrainerProgress::stale},
                                       {"plateau_stale", &TrainerProgress::plateau_stale},
                                       {"plateau_drops", &TrainerProgress::plateau_drops}};

JsonValue progress_json(const TrainerProgress& progress) {
  JsonValue out = JsonValue::object();
  for (const ProgressField& f : kProgress) out.add(f.name, JsonValue::integer(progress.*f.member));
  out.add("best_loss", JsonValue::real(progress.best_loss));
  const EpochPosition& position = progress.position;
  if (position.batch == 0) return out;
  out.add("batch", JsonValue::integer(position.batch));
  out.add("batches_dropped", JsonValue::integer(position.dropped));
  out.add("loss_sum", JsonValue::real(position.sum));
  out.add("loss_counted", JsonValue::real(position.counted));
  return out;
}

// A number that JSON could not hold was written as null.
Result<double> read_real(const JsonValue& object, std::string_view key, const std::string& where) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return bad_file(cat("has no ", key), where);
  if (value->is_null()) return __builtin_nan("");
  return value->as_double(where);
}

Result<int64_t> read_count(const JsonValue& object, std::string_view key,
                           const std::string& where) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return bad_file(cat("has no ", key), where);
  LOOM_ASSIGN(const int64_t number, value->as_int(where));
  if (number < 0) return bad_file(cat(key, " is negative"), where, value->offset());
  return number;
}

Result<TrainerProgress> read_progress(const JsonValue& json, const std::string& where) {
  TrainerProgress progress;
  for (const ProgressField& f : kProgress) {
    LOOM_ASSIGN(progress.*f.member, read_count(json, f.name, where));
  }
  LOOM_ASSIGN(progress.best_loss, read_real(json, "best_loss", where));
  if (json.find("batch") == nullptr) return progress;
  EpochPosition& position = progress.position;
  LOOM_ASSIGN(position.batch, read_count(json, "batch", where));
  LOOM_ASSIGN(position.dropped, read_count(json, "batches_dropped", where));
  LOOM_ASSIGN(position.sum, read_real(json, "loss_sum", where));
  LOOM_ASSIGN(position.counted, read_real(json, "loss_counted", where));
  return progress;
}

JsonValue history_json(const std::vector<EpochReport>& history) {
  JsonValue list = JsonValue::array();
  for (const EpochReport& r : history) {
    JsonValue item = JsonValue::object();
    item.add("epoch", JsonValue::integer(r.epoch));
    item.add("loss", JsonValue::real(r.train_loss));
    if (r.validation.has_value()) {
      item.add("validation_loss", JsonValue::real(r.validation->loss));
      if (r.validation->accuracy.has_value())
        item.add("accuracy", JsonValue::real(*r.validation->accuracy));
      for (const MetricValue& m : r.validation->metrics)
        item.add("metric " + m.name, JsonValue::real(m.value));
    }
    item.add("rate", JsonValue::real(r.learning_rate));
    list.push(std::move(item));
  }
  return list;
}

Result<std::vector<EpochReport>> read_history(const JsonValue& list, const std::string& where) {
  std::vector<EpochReport> history;
  for (const JsonValue& item : list.elements()) {
    EpochReport r;
    LOOM_ASSIGN(r.epoch, read_count(item, "epoch", where));
    LOOM_ASSIGN(r.train_loss, read_real(item, "loss", where));
    LOOM_ASSIGN(r.learning_rate, read_real(item, "rate", where));
    if (item.find("validation_loss") != nullptr) {
      Evaluation e;
      LOOM_ASSIGN(e.loss, read_real(item, "validation_loss", where));
      if (item.find("accuracy") != nullptr) {
        LOOM_ASSIGN(e.accuracy, read_real(item, "accuracy", where));
      }
      for (const auto& [key, value] : item.members()) {
        if (!key.starts_with("metric ")) continue;
        LOOM_ASSIGN(const double number, read_real(item, key, where));
        e.metrics.push_back({key.substr(7), number});
      }
      r.validation = e;
    }
    history.push_back(r);
  }
  return history;
}

std::string_view line_of(std::string_view text, size_t at) {
  const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

// The first difference of two descriptions. Each cell is on its own line.
Status same_network(const std::string& theirs, const std::string& ours, const std::string& where) {
  if (theirs == ours) return {};
  size_t at = 0;
  while (at < theirs.size() && at < ours.size() && theirs[at] == ours[at]) ++at;
  return invalid(cat("belongs to another network: there ", printable(line_of(theirs, at), 400),
                     " here ", printable(line_of(ours, at), 400)),
                 where);
}

// Versions before 0.2 wrote the items of an augmentation in another order.
bool same_augment(const std::string& key, const JsonValue& value, const JsonValue* other) {
  if (key != "augment" || other == nullptr || !other->is_string()) return false;
  const Result<Augment> theirs = parse_augment(other->text());
  return theirs.ok() && augment_text(*theirs) == value.text();
}

Status same_options(const JsonValue& theirs, const JsonValue& ours, const std::string& where) {
  for (const auto& [key, value] : ours.members()) {
    if (key == kEpochs) continue;
    const JsonValue* other = theirs.find(key);
    const std::string mine = dump_json(value);
    const std::string its = other == nullptr ? "nothing" : dump_json(*other);
    if (mine == its || same_augment(key, value, other)) continue;
    return invalid(cat("belongs to a run with other options: ", key, " was ", its, ", now it is ",
                       mine, "; give the same, or leave --resume out"),
                   where);
  }
  for (const auto& [key, value] : theirs.members()) {
    if (key != kEpochs && ours.find(key) == nullptr)
      return invalid(cat("belongs to a run with other options: ", key, " was ", dump_json(value),
                         ", now it does not count"),
                     where);
  }
  return {};
}

Status load_from(const std::string& path, const TrainedModel& model, Trainer& trainer,
                 RecordedRun& run) {
  LOOM_ASSIGN(const WeightsFile file, open_weights(path));
  // Damage anywhere means that the file before this one is taken.
  for (size_t i = 0; file.entity != nullptr && i < file.entity->blobs().size(); ++i)
    LOOM_TRY(file.entity->verify(i));
  LOOM_ASSIGN(const std::string form, file.text("loom"));
  if (form != kForm) return bad_file("these are weights, no checkpoint", path);
  LOOM_TRY(check_digest(file));
  LOOM_ASSIGN(const std::string network, file.text("network"));
  // Both as this release writes them: layers may have gained fields since.
  LOOM_ASSIGN(const NetworkSpec theirs_spec, parse_network(network, path + ": network"));
  LOOM_TRY(same_network(write_network(theirs_spec), write_network(model.network), path));
  LOOM_ASSIGN(const std::string options, file.text("options"));
  LOOM_ASSIGN(const JsonValue theirs, parse_json(options, path + ": options"));
  LOOM_TRY(same_options(theirs, run.options, path));
  if (const JsonValue* epochs = theirs.find(kEpochs)) {
    LOOM_ASSIGN(run.planned_epochs, epochs->as_int(path + ": options"));
  }
  LOOM_ASSIGN(const std::string state, file.text("progress"));
  LOOM_ASSIGN(const JsonValue state_json, parse_json(state, path + ": progress"));
  LOOM_ASSIGN(const TrainerProgress progress, read_progress(state_json, path + ": progress"));
  LOOM_ASSIGN(const std::string past, file.text("history"));
  LOOM_ASSIGN(const JsonValue past_json, parse_json(past, path + ": history"));
  LOOM_ASSIGN(run.history, read_history(past_json, path + ": history"));
  for (const StateTensor& tensor : trainer.step().state()) LOOM_TRY(fill_state(file, tensor));
  return trainer.restore(progress);
}

}  // namespace

namespace {

constexpr std::string_view kDigest = "digest";

std::string digest_of(const SafeMetadata& metadata) {
  std::string all;
  for (const auto& [key, value] : metadata)
    if (key != kDigest) all += cat(key, "=", value.size(), ":", value, "\n");
  return hash_hex(std::as_bytes(std::span(all)));
}

void add_optimizer(const Optimizer& optimizer, JsonValue& out) {
  const Optimizer o = resolved(optimizer);
  out.add("optimizer", text(optimizer_name(o.kind)));
  out.add("beta1", real(*o.beta1));
  out.add("beta2", real(*o.beta2));
  out.add("eps", real(*o.eps));
  out.add("decay", real(*o.weight_decay));
  for (const SavedConstant& c : optimizer_def(o.kind).saved) {
    if (c.real != nullptr) {
      out.add(c.key, real(*(o.*c.real)));
    } else {
      out.add(c.key, JsonValue::integer(c.count != nullptr ? *(o.*c.count) : c.fixed));
    }
  }
}

void add_rule(const RuleSpec& rule, JsonValue& out) {
  const RuleDef& def = rule_def(rule.kind);
  if (def.end_to_end) return;
  out.add("rule", text(rule_name(rule.kind)));
  if (rule.has_budgets()) out.add("rule_gate", real(rule.min_budget()));
  for (const RuleOption& option : def.options) {
    const float value = rule.*option.real;
    if (!option.unless_zero || value > 0) out.add(option.key, real(value));
  }
}

JsonValue json_of(Clip value) {
  return JsonValue::integer(static_cast<int64_t>(value));
}
JsonValue json_of(float value) {
  return real(value);
}
JsonValue json_of(double value) {
  return JsonValue::real(value);
}
JsonValue json_of(int64_t value) {
  return JsonValue::integer(value);
}
JsonValue json_of(const std::vector<int64_t>& values) {
  JsonValue list = JsonValue::array();
  for (const int64_t value : values) list.push(JsonValue::integer(value));
  return list;
}

}  // namespace

void add_digest(SafeMetadata& metadata) {
  metadata.emplace_back(kDigest, digest_of(metadata));
}

Status check_digest(const WeightsFile& file) {
  const Result<std::string> digest = file.text(kDigest);
  if (!digest.ok() || *digest == digest_of(file.tensors.metadata())) return {};
  return bad_file("is damaged: what it says of the run is not what was saved", file.path);
}

JsonValue run_options(const TrainerSpec& o, const Dataset& train, const Dataset& validation) {
  JsonValue out = JsonValue::object();
  const auto add = [&](const char* key, JsonValue value) { out.add(key, std::move(value)); };
  add("data", text(hash_data(train, validation)));
  add("samples", JsonValue::integer(train.samples));
  add("batch", JsonValue::integer(o.batch));
  add("accumulate", JsonValue::integer(o.step.accumulate));
  add("dtype", text(dtype_name(o.dtype)));
  add("scale_band", JsonValue::real(o.step.scale_band));
  add("seed", JsonValue::integer(static_cast<int64_t>(o.seed)));
  add("shuffle", JsonValue::boolean(o.shuffle));
  add("loss", text(loss_name(o.step.loss.kind)));
  add("delta", real(o.step.loss.delta));
  add("smoothing", real(o.step.loss.smoothing));
  if (o.step.loss.pairs()) add("pairs", loss_json(o.step.loss));
  for (const LossOption& option : loss_def(o.step.loss.kind).options) {
    const char* key = option.run_key != nullptr ? option.run_key : option.key;
    if (!o.step.loss.pairs()) add(key, option_json(o.step.loss, option));
  }
  add_optimizer(o.step.optimizer, out);
  if (!o.step.rules.freeze.empty()) add("freeze", text(join(o.step.rules.freeze, ";")));
  if (!o.step.rules.unfreeze.empty()) add("unfreeze", text(join(o.step.rules.unfreeze, ";")));
  if (!o.step.rules.rates.empty()) {
    std::vector<std::string> rates;
    for (const RateFor& r : o.step.rules.rates) rates.push_back(cat(r.pattern, "=", r.factor));
    add("rate_for", text(join(rates, ";")));
  }
  add_rule(o.step.rule, out);
  const auto save = [&](const char* key, const auto& value) { add(key, json_of(value)); };
  each_saved(o.step.average, save);
  each_saved(o.step.lookahead, save);
  each_saved(o.step.noise, save);
  if (!o.class_weights.empty()) {
    JsonValue list = JsonValue::array();
    for (const float w : o.class_weights) list.push(real(w));
    add("class_weights", std::move(list));
  }
  if (o.balanced_weights) add("class_weights", text("balanced"));
  if (o.augment.any()) add("augment", text(augment_text(o.augment)));
  if (o.balance) add("balance", JsonValue::boolean(true));
  if (o.step.native) add("native", JsonValue::boolean(true));
  if (o.step.carry_feedback) add("carry_feedback", JsonValue::boolean(true));
  if (!o.step.loss.heads.empty()) add("heads", JsonValue::string(dump_heads(o.step.loss.heads)));
  each_saved(o.step.clip, save);
  add("schedule", text(schedule_name(o.schedule.kind)));
  add("rate", JsonValue::real(o.rate));
  each_field(o.schedule, save);
  if (schedule_def(o.schedule.kind).needs_total) add(kEpochs, JsonValue::integer(o.epochs));
  return out;
}

Status save_checkpoint(const std::string& path, const TrainedModel& model, Trainer& trainer,
                       const RecordedRun& run) {
  LOOM_TRY(trainer.step().show_average(false));
  LOOM_TRY(trainer.step().fetch());
  const SafeMetadata about = {{"options", dump_json(run.options)},
                              {"progress", dump_json(progress_json(trainer.progress()))},
                              {"history", dump_json(history_json(run.history))}};
  const std::string keep = path + ".previous";
  if (path.ends_with(".entity")) return save_checkpoint_entity(path, model, trainer, about, keep);
  std::vector<SafeOutput> tensors;
  for (const StateTensor& state : trainer.step().state()) tensors.push_back(state_output(state));
  add_normalization(model, tensors);
  SafeMetadata metadata = model_metadata(model, kForm);
  metadata.insert(metadata.end(), about.begin(), about.end());
  add_digest(metadata);
  return write_safetensors(path, std::move(tensors), metadata, keep);
}

Result<std::string> load_checkpoint(const std::string& path, const TrainedModel& model,
                                    Trainer& trainer, RecordedRun& run) {
  const Status first = load_from(path, model, trainer, run);
  if (first.ok()) return path;
  const Code code = first.error().code;
  const std::string previous = path + ".previous";
  const bool damaged = code == Code::not_found || code == Code::bad_file;
  if (!damaged || !file_exists(previous)) return first.error();
  LOOM_TRY(load_from(previous, model, trainer, run));
  return previous;
}

}  // namespace loom::core
