// The words for the values of public enums of training: see names.cpp.
#include "base/names.hpp"
#include "bridge/normalization.hpp"
#include "learn/spec.hpp"
#include "loom/dataset.hpp"
#include "loom/trainer.hpp"

namespace loom {
namespace {

constexpr std::string_view kOptimizers[] = {
    "sgd",      "momentum", "nesterov", "rmsprop", "adam", "adamw",     "lion", "lbfgs", "adagrad",
    "adadelta", "nadam",    "adamax",   "radam",   "lamb", "adafactor", "muon", "kfac",  "sophia"};
constexpr std::string_view kHeaders[] = {"auto", "yes", "no"};

// A value that is none of its enum has no name.
template <class E>
std::string_view training_word(std::span<const std::string_view> words, E value) {
  const auto index = static_cast<size_t>(value);
  return index < words.size() ? words[index] : std::string_view("unknown");
}

}  // namespace

std::string_view loss_name(Loss loss) {
  if (loss == Loss::automatic) return "automatic";
  return core::loss_name(static_cast<core::LossKind>(static_cast<int>(loss) - 1));
}
Result<Loss> parse_loss(std::string_view name) {
  LOOM_ASSIGN(const core::LossKind kind, core::parse_loss(name));
  return static_cast<Loss>(static_cast<int>(kind) + 1);
}

std::string_view optimizer_name(OptimizerKind kind) {
  return training_word(kOptimizers, kind);
}
Result<OptimizerKind> parse_optimizer(std::string_view name) {
  return core::value_named<OptimizerKind>("optimizer", kOptimizers, name);
}

std::string_view schedule_name(ScheduleKind kind) {
  return core::schedule_name(static_cast<core::ScheduleKind>(kind));
}
Result<ScheduleKind> parse_schedule(std::string_view name) {
  LOOM_ASSIGN(const core::ScheduleKind kind, core::parse_schedule(name));
  return static_cast<ScheduleKind>(kind);
}

std::string_view clip_name(Clip clip) {
  return core::clip_name(static_cast<core::ClipKind>(clip));
}
Result<Clip> parse_clip(std::string_view name) {
  LOOM_ASSIGN(const core::ClipKind kind, core::parse_clip(name));
  return static_cast<Clip>(kind);
}

std::string_view rule_name(Rule rule) {
  return core::rule_name(static_cast<core::RuleKind>(rule));
}
Result<Rule> parse_rule(std::string_view name) {
  LOOM_ASSIGN(const core::RuleKind kind, core::parse_rule(name));
  return static_cast<Rule>(kind);
}

std::string_view normalize_name(Normalize normalize) {
  return training_word(core::kNormalizeNames, normalize);
}
Result<Normalize> parse_normalize(std::string_view name) {
  return core::value_named<Normalize>("normalization", core::kNormalizeNames, name);
}

std::string_view csv_header_name(DatasetOptions::Header header) {
  return training_word(kHeaders, header);
}
Result<DatasetOptions::Header> parse_csv_header(std::string_view name) {
  return core::value_named<DatasetOptions::Header>("header", kHeaders, name);
}

}  // namespace loom
