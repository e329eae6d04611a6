// Texts of public enum values, in both directions. The program, the C interface and Python use
// them. Enums that lower rooms also have take the texts of those rooms.
#include "base/names.hpp"

#include <iterator>

#include "layers/core/layer.hpp"
#include "loom/loom.hpp"
#include "ops/activation.hpp"

namespace loom {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kDevices[] = {"cpu", "gpu"};
constexpr std::string_view kActivationModes[] = {"automatic", "q8", "f32"};
constexpr std::string_view kTunings[] = {"on", "off", "force"};
constexpr std::string_view kLevels[] = {"debug", "info", "warning"};
constexpr std::string_view kFormats[] = {"entity", "json", "onnx", "npz", "safetensors"};
constexpr std::string_view kCells[] = {"rnn", "lstm", "gru"};

// A value outside its enum has no name.
template <class E>
std::string_view word_of(Words words, E value) {
  const auto index = static_cast<size_t>(value);
  return index < words.size() ? words[index] : std::string_view("unknown");
}

}  // namespace

std::string_view device_name(Device device) {
  return word_of(kDevices, device);
}
Result<Device> parse_device(std::string_view name) {
  return core::value_named<Device>("device", kDevices, name);
}

std::string_view activations_name(Activations activations) {
  return word_of(kActivationModes, activations);
}
Result<Activations> parse_activations(std::string_view name) {
  return core::value_named<Activations>("activations", kActivationModes, name);
}

std::string_view gpu_tuning_name(GpuTuning tuning) {
  return word_of(kTunings, tuning);
}
Result<GpuTuning> parse_gpu_tuning(std::string_view name) {
  return core::value_named<GpuTuning>("GPU tuning", kTunings, name);
}

std::string_view log_level_name(LogLevel level) {
  return word_of(kLevels, level);
}

std::string_view network_format_name(NetworkFormat format) {
  return word_of(kFormats, format);
}
Result<NetworkFormat> parse_network_format(std::string_view name) {
  return core::value_named<NetworkFormat>("format", kFormats, name);
}

std::string_view recurrent_cell_name(RecurrentCell cell) {
  return word_of(kCells, cell);
}
Result<RecurrentCell> parse_recurrent_cell(std::string_view name) {
  return core::value_named<RecurrentCell>("recurrent cell", kCells, name);
}

std::string_view activation_name(Activation activation) {
  const auto index = static_cast<int>(activation);
  if (index >= core::kActivations) return "unknown";
  return core::activation_name(static_cast<core::Activation>(index));
}
Result<Activation> parse_activation(std::string_view name) {
  std::vector<std::string_view> words(static_cast<size_t>(core::kActivations));
  for (size_t i = 0; i < words.size(); ++i)
    words[i] = core::activation_name(static_cast<core::Activation>(i));
  return core::value_named<Activation>("activation", words, name);
}

}  // namespace loom
