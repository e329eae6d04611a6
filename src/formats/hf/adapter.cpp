#include "formats/hf/adapter.hpp"

#include <cmath>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "formats/hf/names.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_role.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kConfig = "adapter_config.json", kTensors = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.";

// The settings that numbers depend on.
struct PeftConfig {
  double alpha = 8;
  bool rank_stabilized = false;
  std::vector<std::pair<std::string, double>> alphas;  // of modules, by the end of their names
};

// Settings that must be absent or off, because they are other mathematics.
struct OffSetting {
  std::string_view key, meaning;
};
constexpr OffSetting kOff[] = {{"use_dora", "DoRA"},
                               {"lora_bias", "biases of B"},
                               {"alora_invocation_tokens", "an activated LoRA"},
                               {"target_parameters", "adapters of parameters"},
                               {"layer_replication", "repeated layers"},
                               {"trainable_token_indices", "trained rows of the embedding"}};

bool is_off(const JsonValue* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->is_bool()) return !*value->as_bool("");
  if (value->is_array()) return value->elements().empty();
  return value->is_object() && value->members().empty();
}

class PeftReader {
 public:
  PeftReader(std::string folder, const DecoderConfig& config, double factor)
      : folder_(std::move(folder)), config_(config), factor_(factor) {}

  Result<ModelAdapter> read();

 private:
  std::string file(std::string_view name) const {
    return (std::filesystem::path(folder_) / name).string();
  }
  Status read_config();
  Status read_alphas(const JsonValue& json, const std::string& where);
  Result<const SafeTensor*> matrix(const std::string& name) const;
  Result<std::vector<float>> values(const SafeTensor& tensor) const;
  Status add(const Param& param, const std::string& below);
  Status check_used() const;
  double alpha_of(const std::string& module) const;

  std::string folder_;
  const DecoderConfig& config_;
  double factor_;
  PeftConfig peft_;
  SafeTensors tensors_;
  std::set<std::string> used_;
  ModelAdapter out_;
};

Status PeftReader::read_config() {
  const std::string path = file(kConfig);
  LOOM_ASSIGN(const std::string text, read_file(path));
  LOOM_ASSIGN(const JsonValue json, parse_json(text, path));
  const JsonValue* type = json.find("peft_type");
  if (type == nullptr || !type->is_string() || type->text() != "LORA") {
    return unsupported(cat("peft_type is ", type == nullptr ? "absent" : type->describe(),
                           "; only \"LORA\" is read"),
                       path);
  }
  for (const OffSetting& setting : kOff) {
    if (!is_off(json.find(setting.key)))
      return unsupported(cat(setting.key, ": ", setting.meaning, " cannot be run yet"), path);
  }
  if (const JsonValue* bias = json.find("bias"); bias != nullptr && bias->text() != "none")
    return unsupported("bias: adapters with trained biases cannot be run yet", path);
  if (const JsonValue* alpha = json.find("lora_alpha")) {
    LOOM_ASSIGN(peft_.alpha, alpha->as_double(cat(path, ": lora_alpha")));
  }
  if (const JsonValue* stabilized = json.find("use_rslora")) {
    LOOM_ASSIGN(peft_.rank_stabilized, stabilized->as_bool(cat(path, ": use_rslora")));
  }
  return read_alphas(json, path);
}

// Keys are ends of names of modules here; PEFT takes regular expressions too.
Status PeftReader::read_alphas(const JsonValue& json, const std::string& where) {
  const JsonValue* pattern = json.find("alpha_pattern");
  if (pattern == nullptr || pattern->is_null()) return {};
  if (!pattern->is_object()) return bad_file("alpha_pattern must be an object", where);
  for (const auto& [key, value] : pattern->members()) {
    if (key.find_first_of("*+?[](){}|^$\\") != std::string::npos) {
      return unsupported(cat("alpha_pattern: '", printable(key),
                             "' is a regular expression; name modules without one"),
                         where);
    }
    LOOM_ASSIGN(const double alpha, value.as_double(cat(where, ": alpha_pattern.", key)));
    peft_.alphas.emplace_back(key, alpha);
  }
  return {};
}

double PeftReader::alpha_of(const std::string& module) const {
  for (const auto& [end, alpha] : peft_.alphas) {
    if (module == end || module.ends_with("." + end)) return alpha;
  }
  return peft_.alpha;
}

// Null if the file has no such matrix.
Result<const SafeTensor*> PeftReader::matrix(const std::string& name) const {
  const SafeTensor* tensor = tensors_.find(name);
  if (tensor == nullptr || tensor->shape.size() == 2) return tensor;
  return bad_file(cat("tensor ", name, " must be a matrix"), file(kTensors));
}

Result<std::vector<float>> PeftReader::values(const SafeTensor& tensor) const {
  std::vector<float> all(static_cast<size_t>(tensor.shape[0] * tensor.shape[1]));
  LOOM_TRY(SafeTensors::to_f32(tensor, 0, std::ssize(all), all.data()));
  for (const float v : all) {
    if (!std::isfinite(v))
      return bad_file(cat("tensor ", tensor.name, " has values that are not finite"),
                      file(kTensors));
  }
  return all;
}

// Parameters that share a tensor of the checkpoint (q, k and v in one) share A, and each has its
// rows of B.
Status PeftReader::add(const Param& param, const std::string& below) {
  const TensorPart part = hf_tensor(param, config_);
  if (!part.name.ends_with(".weight")) return {};
  const std::string module = part.name.substr(0, part.name.size() - 7);
  const std::string start = cat(kPrefix, module);
  LOOM_ASSIGN(const SafeTensor* a, matrix(start + ".lora_A.weight"));
  LOOM_ASSIGN(const SafeTensor* b, matrix(start + ".lora_B.weight"));
  if (a == nullptr && b == nullptr) return {};
  if (a == nullptr || b == nullptr) {
    return bad_file(cat(start, " has ", a == nullptr ? "lora_B" : "lora_A", " alone"),
                    file(kTensors));
  }
  const int64_t out = param.spec.shape[0], in = param.spec.shape[1];
  const int64_t rank = a->shape[0], rows = part.rows > 0 ? part.rows : out;
  if (a->shape[1] != in || b->shape[0] != rows || b->shape[1] != rank || rank < 1) {
    return bad_file(
        cat(start, ": lora_A [", a->shape[0], ", ", a->shape[1], "] and lora_B [", b->shape[0],
            ", ", b->shape[1], "] do not fit a weight [", rows, ", ", in, "] of the model"),
        file(kTensors));
  }
  WeightAdapter weight;
  weight.cell = param.cell;
  weight.below = below;
  weight.rank = rank;
  const auto by = static_cast<double>(rank);
  weight.scale = factor_ * alpha_of(module) / (peft_.rank_stabilized ? std::sqrt(by) : by);
  LOOM_ASSIGN(weight.a, values(*a));
  LOOM_ASSIGN(const std::vector<float> all, values(*b));
  weight.b.resize(static_cast<size_t>(out * rank));
  for (int64_t row = 0; row < out; ++row)
    std::copy_n(all.data() + part.row(row) * rank, rank, weight.b.data() + row * rank);
  used_.insert(a->name);
  used_.insert(b->name);
  out_.weights.push_back(std::move(weight));
  return {};
}

Status PeftReader::check_used() const {
  for (const SafeTensor& tensor : tensors_.tensors()) {
    if (used_.contains(tensor.name)) continue;
    return unsupported(cat("tensor ", printable(tensor.name), " belongs to no weight of ",
                           config_.architecture, " that can have an adapter"),
                       file(kTensors));
  }
  if (out_.weights.empty()) return bad_file("it has no tensors", file(kTensors));
  return {};
}

Result<ModelAdapter> PeftReader::read() {
  LOOM_TRY(read_config());
  LOOM_ASSIGN(tensors_, SafeTensors::open(FileRef(file(kTensors))));
  out_.path = folder_;
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(config_));
  Status status;
  each_decoder_param(grid, [&](const Param& param) {
    if (!status.ok() || !param.spec.product) return;
    status = add(param, param.child < 0 ? std::string(param.spec.name)
                                        : cat(param.child, "/", param.spec.name));
  });
  LOOM_TRY(status);
  LOOM_TRY(check_used());
  return std::move(out_);
}

}  // namespace

Result<ModelAdapter> read_peft_adapter(const std::string& folder, const DecoderConfig& config,
                                       double factor) {
  return PeftReader(folder, config, factor).read();
}

}  // namespace loom::core
