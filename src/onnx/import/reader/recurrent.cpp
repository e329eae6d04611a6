// Recurrences. ONNX has the time axis first and the gates of an LSTM in the order i o f c (ours: i
// f g o, g being c), those of a GRU as z r h (ours: r z n). See importer.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "onnx/import/reader/importer.hpp"

namespace loom::core {
namespace {

constexpr size_t kLstmGates[] = {0, 2, 3, 1}, kGruGates[] = {1, 0, 2}, kRnnGates[] = {0};
constexpr OnnxGates kGates[] = {{"lstm", LayerKind::lstm, kLstmGates},
                                {"gru", LayerKind::gru, kGruGates},
                                {"rnn", LayerKind::rnn, kRnnGates}};

// Blocks of [first, first + order.size() * block), in the order.
std::vector<float> reordered(const std::vector<float>& all, size_t first, size_t block,
                             std::span<const size_t> order) {
  std::vector<float> out;
  for (const size_t from : order) {
    const auto begin = all.begin() + static_cast<int64_t>(first + from * block);
    out.insert(out.end(), begin, begin + static_cast<int64_t>(block));
  }
  return out;
}

// Whether a state has a bias: biases of each direction are `count` of the input, then of the state.
bool has_second_bias(const std::vector<float>& biases, size_t count) {
  for (size_t i = 0; i < biases.size(); ++i) {
    if (i / count % 2 == 1 && biases[i] != 0) return true;
  }
  return false;
}

// Whether these activations, named as operators, are these functions.
bool has_functions(const OnnxAttribute& activations, std::span<const std::string_view> functions) {
  return std::ranges::equal(activations.texts, functions, {},
                            [](const std::string& name) { return layer_of(name).function; });
}

// The activation of an RNN by its name in ONNX; "" if Loom does not have it.
std::string rnn_activation(const OnnxNode& n, size_t ways) {
  const OnnxAttribute* a = n.find("activations");
  if (a == nullptr) return "tanh";
  if (ways > 1) return has_functions(*a, std::vector<std::string_view>(ways, "tanh")) ? "tanh" : "";
  if (a->texts.size() != 1) return "";
  const std::string& name = a->texts[0];
  const OnnxAttribute* alphas = n.find("activation_alpha");
  const OnnxAttribute* betas = n.find("activation_beta");
  const auto is = [](const OnnxAttribute* given, float value, bool otherwise) {
    return given == nullptr || given->reals.empty() ? otherwise : given->reals[0] == value;
  };
  const std::string function(layer_of(name).function);
  constexpr std::string_view kPlain[] = {"tanh", "relu", "sigmoid", "softplus"};
  if (std::ranges::find(kPlain, function) != std::end(kPlain)) return function;
  if (function == "leaky_relu" && is(alphas, 0.01f, true)) return function;
  if (function == "elu" && is(alphas, 1.0f, true)) return function;
  if (name == "Affine" && is(alphas, 1.0f, false) && is(betas, 0.0f, true)) return "linear";
  return "";
}

// Whether an LSTM or a GRU has the activations that layers have.
bool has_usual_activations(const OnnxNode& n, LayerKind kind, size_t ways) {
  const OnnxAttribute* a = n.find("activations");
  if (a == nullptr) return true;
  std::vector<std::string_view> want;
  for (size_t way = 0; way < ways; ++way) {
    want.insert(want.end(), {"sigmoid", "tanh"});
    if (kind == LayerKind::lstm) want.emplace_back("tanh");
  }
  return has_functions(*a, want);
}

// Part `way` of so many equal ones.
std::vector<float> part_of(const std::vector<float>& all, size_t way, size_t ways) {
  const auto each = static_cast<int64_t>(all.size() / ways), at = each * static_cast<int64_t>(way);
  return {all.begin() + at, all.begin() + at + each};
}

}  // namespace

bool is_recurrent(LayerKind kind) {
  return std::ranges::any_of(kGates, [&](const OnnxGates& g) { return g.kind == kind; });
}

std::vector<Field> OnnxRecurrence::fields() const {
  std::vector<Field> out = {{"in", in}, {"hidden", hidden}};
  if (gates->kind == LayerKind::rnn) out.emplace_back("activation", activation);
  if (gates->kind != LayerKind::gru) out.emplace_back("state_bias", two_biases);
  return out;
}

bool OnnxRecurrence::has_cell() const {
  return gates->kind == LayerKind::lstm;
}

bool OnnxRecurrence::has_state_bias() const {
  return two_biases || gates->kind == LayerKind::gru;
}

std::vector<float> OnnxRecurrence::input_weights(size_t way) const {
  return reordered(part_of(w, way, ways), 0, static_cast<size_t>(hidden * in), gates->order);
}

std::vector<float> OnnxRecurrence::state_weights(size_t way) const {
  return reordered(part_of(r, way, ways), 0, static_cast<size_t>(hidden * hidden), gates->order);
}

std::vector<float> OnnxRecurrence::bias(size_t way, bool of_state) const {
  const auto first = of_state ? static_cast<size_t>(rows()) : 0;
  return reordered(part_of(biases, way, ways), first, static_cast<size_t>(hidden), gates->order);
}

// Lengths, starting states, and requests that no layer has.
Status Importer::check_recurrent(const OnnxNode& n, const OnnxRecurrence& args) {
  const auto all = [](const Constant& c, double value) {
    return std::ranges::all_of(c.values, [&](double v) { return v == value; });
  };
  for (size_t i = 4; i < n.inputs.size(); ++i) {
    if (!has_input(n, i)) continue;
    LOOM_ASSIGN(const ImportValue* v, input(n, i));
    if (!v->is_constant() && (i == 5 || i == 6)) {
      const std::vector<int64_t> dims = extents(*v);
      if (dims == std::vector<int64_t>{static_cast<int64_t>(args.ways), batch_, args.hidden})
        continue;
      std::vector<std::string> parts;
      for (const int64_t extent : dims) parts.push_back(cat(extent));
      return refuse(
          n, cat("a starting state of [", join(parts, ", "), "]; read is one for each sample"));
    }
    const Result<ConstantRef> known =
        v->is_constant() ? constant_of_both(n, i) : Result<ConstantRef>(ConstantRef());
    if (!known.ok() || *known == nullptr || i > 6 ||
        !all(**known, i == 4 ? static_cast<double>(args.time) : 0))
      return refuse(n,
                    "lengths, peepholes, or a starting state of other constants than zero, are "
                    "not read");
    depends_on_batch_ |= !follows_batch(**known);
  }
  const LayerKind kind = args.gates->kind;
  if (kind == LayerKind::gru && attribute(n, "linear_before_reset", 0) == 0)
    return refuse(n, "only linear_before_reset 1 is read (the form of PyTorch and cuDNN)");
  const bool plain =
      kind == LayerKind::rnn ? !args.activation.empty() : has_usual_activations(n, kind, args.ways);
  if (!plain || n.find("clip") != nullptr || attribute(n, "input_forget", 0) != 0)
    return refuse(n, "activations, clip or input_forget that no layer has");
  return {};
}

Status Importer::read_recurrent(const OnnxNode& n) {
  OnnxRecurrence args;
  args.gates = &*std::ranges::find_if(
      kGates, [&](const OnnxGates& row) { return row.function == layer_of(n.op).function; });
  LOOM_ASSIGN(const std::vector<int64_t> dims, extents_of(n, 0));
  LOOM_ASSIGN(const ConstantRef w, read_weights(n, 1));
  LOOM_ASSIGN(const ConstantRef r, read_weights(n, 2));
  if (dims.size() != 3) return refuse(n, "its input must be a sequence");
  if (attribute(n, "layout", 0) != 0)
    return refuse(n, "layout 1 (the batch first) is not read; export with layout 0 and Transpose");
  if (dims[1] != batch_) {
    refusal_ = Refusal::along_batch;
    return refuse(n, kAlongBatch);
  }
  args.time = dims[0];
  const int64_t ways = w->dims.size() == 3 ? w->dims[0] : 0;
  args.hidden = r->dims.size() == 3 ? r->dims[2] : 0;
  if (ways < 1 || ways > 2 || args.hidden < 1 || r->dims[0] != ways || w->dims[2] < 1 ||
      w->dims[1] != args.rows() || r->dims[1] != args.rows() ||
      attribute(n, "hidden_size", args.hidden) != args.hidden)
    return refuse(n, "weights that do not fit each other, or its hidden_size");
  args.in = w->dims[2];
  args.ways = static_cast<size_t>(ways);
  const std::string direction = attribute_text(n, "direction", "forward");
  args.backwards = direction == "reverse";
  if ((direction == "bidirectional") != (ways == 2) ||
      (ways == 1 && direction != "forward" && !args.backwards))
    return refuse(n, "a direction that does not fit its weights");
  if (args.gates->kind == LayerKind::rnn) args.activation = rnn_activation(n, args.ways);
  LOOM_TRY(check_recurrent(n, args));
  args.biases.resize(2 * static_cast<size_t>(args.rows()) * args.ways);
  if (has_input(n, 3)) {
    LOOM_ASSIGN(const ConstantRef b, read_weights(n, 3));
    if (b->dims != std::vector<int64_t>{ways, 2 * args.rows()})
      return refuse(n, "biases of the wrong size");
    args.biases = b->floats();
    args.trained_half = origins_.trained_half(n.inputs[3]);
    args.two_biases =
        args.trained_half != 0 || has_second_bias(args.biases, static_cast<size_t>(args.rows()));
  }
  args.w = w->floats();
  args.r = r->floats();
  return recurrent(n, args);
}

}  // namespace loom::core
