// Converts layer records to typed fields: see reader.hpp. Keys are those of both dialects of the
// original. Some belong to one only, and a file that mixes them is refused.
#include "formats/original/reader.hpp"

#include <algorithm>
#include <cmath>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxLoom1Cells = uint64_t{1} << 18;
constexpr int64_t kMaxNumber = int64_t{1} << 40;

constexpr struct {
  std::string_view key;
  int64_t Loom1Record::*field;
} kNumbers[] = {{"z", &Loom1Record::z},
                {"y", &Loom1Record::y},
                {"x", &Loom1Record::x},
                {"l", &Loom1Record::l},
                {"input_height", &Loom1Record::input_height},
                {"input_width", &Loom1Record::input_width},
                {"input_depth", &Loom1Record::input_depth},
                {"output_height", &Loom1Record::output_height},
                {"output_width", &Loom1Record::output_width},
                {"output_depth", &Loom1Record::output_depth},
                {"input_channels", &Loom1Record::input_channels},
                {"filters", &Loom1Record::filters},
                {"kernel_size", &Loom1Record::kernel_size},
                {"stride", &Loom1Record::stride},
                {"padding", &Loom1Record::padding},
                {"output_padding", &Loom1Record::output_padding},
                {"num_heads", &Loom1Record::num_heads},
                {"num_kv_heads", &Loom1Record::num_kv_heads},
                {"head_dim", &Loom1Record::head_dim},
                {"query_dim", &Loom1Record::query_dim},
                {"d_model", &Loom1Record::d_model},
                {"seq_length", &Loom1Record::seq_length},
                {"vocab_size", &Loom1Record::vocab_size},
                {"embedding_dim", &Loom1Record::embedding_dim},
                {"num_clusters", &Loom1Record::num_clusters},
                {"softmax_rows", &Loom1Record::softmax_rows},
                {"softmax_cols", &Loom1Record::softmax_cols},
                {"tile_size", &Loom1Record::tile_size},
                {"target_z", &Loom1Record::target_z},
                {"target_y", &Loom1Record::target_y},
                {"target_x", &Loom1Record::target_x},
                {"target_l", &Loom1Record::target_l}};

constexpr struct {
  std::string_view key;
  double Loom1Record::*field;
} kReals[] = {{"rope_freq_base", &Loom1Record::rope_freq_base},
              {"kmeans_temperature", &Loom1Record::kmeans_temperature},
              {"temperature", &Loom1Record::temperature},
              {"entmax_alpha", &Loom1Record::entmax_alpha},
              {"scale", &Loom1Record::scale}};

constexpr struct {
  std::string_view key;
  bool Loom1Record::*field;
} kFlags[] = {{"gumbel_noise", &Loom1Record::gumbel_noise},
              {"native", &Loom1Record::native},
              {"use_tiling", &Loom1Record::use_tiling},
              {"is_disabled", &Loom1Record::is_disabled},
              {"is_remote_link", &Loom1Record::is_remote_link}};

constexpr struct {
  std::string_view key;
  std::string Loom1Record::*field;
} kTexts[] = {{"type", &Loom1Record::type},
              {"activation", &Loom1Record::activation},
              {"dtype", &Loom1Record::dtype},
              {"output_mode", &Loom1Record::output_mode},
              {"combine_mode", &Loom1Record::combine_mode}};

constexpr std::string_view kCheckpointKeys[] = {"weights",
                                                "native",
                                                "scale",
                                                "head_dim",
                                                "query_dim",
                                                "rope_freq_base",
                                                "kmeans_temperature",
                                                "output_padding",
                                                "gumbel_noise",
                                                "is_disabled"};
constexpr std::string_view kArchitectureKeys[] = {
    "is_remote_link", "target_z", "target_y", "target_x", "target_l", "mask", "hierarchy_levels"};

// Indexed by the number in the architecture dialect.
constexpr std::string_view kSoftmaxTypes[] = {"standard", "grid",   "hierarchical", "temperature",
                                              "gumbel",   "masked", "sparse",       "adaptive",
                                              "mixture",  "entmax"};

template <class List>
bool holds(const List& list, std::string_view key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

}  // namespace

Error Loom1Reader::bad(const JsonValue& at, const std::string& location,
                       std::string_view message) const {
  return bad_file(cat(location, location.empty() ? "" : ": ", message), where_,
                  at.offset() < 0 ? -1 : base_ + at.offset());
}

Error Loom1Reader::bad(const Loom1Layer& layer, std::string_view message) const {
  return bad_file(cat(layer.location, ": ", message), where_, layer.offset);
}

Error Loom1Reader::lacking(const Loom1Layer& layer, std::string_view message) const {
  Error error = bad(layer, message);
  error.code = Code::unsupported;
  return error;
}

void Loom1Reader::note(const std::string& location, std::string_view text) {
  notes.push_back(cat(location, ": ", text));
}

Status Loom1Reader::check_dialect(const std::string& key, const JsonValue& value,
                                  const Loom1Layer& into) {
  const bool softmax = key == "softmax_type";
  const bool checkpoint = holds(kCheckpointKeys, key) || (softmax && value.is_string());
  const bool architecture = holds(kArchitectureKeys, key) || (softmax && value.is_int());
  if (!checkpoint && !architecture) return {};
  const std::string here = softmax ? cat(key, checkpoint ? " as text" : " as a number") : key;
  std::string& mine = checkpoint ? checkpoint_key_ : architecture_key_;
  const std::string& other = checkpoint ? architecture_key_ : checkpoint_key_;
  if (mine.empty()) mine = here;
  if (other.empty()) return {};
  return bad(value, cat(into.location, ".", key),
             cat(checkpoint ? architecture_key_ : checkpoint_key_, " and ", here,
                 " are in files of two kinds, an architecture and a checkpoint; no file has both"));
}

Status Loom1Reader::read_list(const JsonValue& value, const std::string& location, bool flags,
                              std::vector<int64_t>& out) const {
  if (value.is_null()) return {};
  if (!value.is_array())
    return bad(value, location, cat("expected a list, found ", value.describe()));
  for (const JsonValue& item : value.elements()) {
    const Result<int64_t> number = item.as_int("");
    const Result<bool> flag = item.as_bool("");
    if (flags ? !flag.ok() : !number.ok()) {
      return bad(
          item, location,
          cat("expected ", flags ? "true or false" : "an integer", ", found ", item.describe()));
    }
    out.push_back(flags ? (*flag ? 1 : 0) : *number);
  }
  return {};
}

Status Loom1Reader::read_children(const JsonValue& value, Loom1Layer& into) {
  const bool branches = into.config.def->kind == LayerKind::parallel;
  const std::string key = branches ? "parallel_branches" : "sequential_layers";
  const std::string location = cat(into.location, ".", key);
  if (value.is_null()) return {};
  if (!value.is_array()) {
    return bad(value, location, cat("expected a list of layers, found ", value.describe()));
  }
  for (size_t i = 0; i < value.elements().size(); ++i) {
    LOOM_ASSIGN(Loom1Layer child, layer(value.elements()[i], cat(location, "[", i, "]"),
                                        cat(into.path, ".", key, ".", i),
                                        branches ? Nesting::branch : Nesting::step));
    into.children.push_back(std::move(child));
  }
  return {};
}

Status Loom1Reader::read_special(const std::string& key, const JsonValue& value, Loom1Layer& into) {
  const std::string location = cat(into.location, ".", printable(key));
  Loom1Record& r = into.record;
  if (key == "weights") {
    if (!value.is_string())
      return bad(value, location, cat("expected Base64 text, found ", value.describe()));
    r.weights = &value;
    return {};
  }
  if (key == "softmax_type") {
    if (value.is_string()) {
      r.softmax_type = value.text();
      return {};
    }
    const Result<int64_t> number = value.as_int("");
    if (!number.ok() || *number < 0 || *number >= std::ssize(kSoftmaxTypes)) {
      return bad(
          value, location,
          cat("expected the name of a softmax or a number from 0 to 9, found ", value.describe()));
    }
    r.softmax_type = kSoftmaxTypes[*number];
    return {};
  }
  if (key == "mask") return read_list(value, location, true, r.mask);
  if (key == "hierarchy_levels") return read_list(value, location, false, r.hierarchy_levels);
  if (key == "meta_rules" || key == "meta_observed_layer") {
    if (value.is_null() || (value.is_array() && value.elements().empty())) return {};
    Error error = bad(value, location,
                      "metacognition changes a layer while it runs, which Loom does not do; save "
                      "the layer it observes without it");
    error.code = Code::unsupported;
    return error;
  }
  if (key == "parallel_branches" || key == "sequential_layers") return {};  // read_children
  return bad(value, location, "unknown key; the original writes no such field");
}

Status Loom1Reader::read_member(const std::string& key, const JsonValue& value, Loom1Layer& into) {
  const std::string location = cat(into.location, ".", printable(key));
  const auto expected = [&](std::string_view what) -> Error {
    return bad(value, location, cat("expected ", what, ", found ", value.describe()));
  };
  LOOM_TRY(check_dialect(key, value, into));
  for (const auto& row : kNumbers) {
    if (row.key != key) continue;
    const Result<int64_t> number = value.as_int("");
    if (!number.ok() || *number > kMaxNumber || *number < -kMaxNumber)
      return expected(cat("an integer of at most ", kMaxNumber));
    into.record.*row.field = *number;
    return {};
  }
  for (const auto& row : kReals) {
    if (row.key != key) continue;
    const Result<double> number = value.as_double("");
    if (!number.ok()) return expected("a number");
    into.record.*row.field = *number;
    return {};
  }
  for (const auto& row : kFlags) {
    if (row.key != key) continue;
    if (!value.is_bool()) return expected("true or false");
    into.record.*row.field = *value.as_bool("");
    return {};
  }
  for (const auto& row : kTexts) {
    if (row.key != key) continue;
    if (!value.is_string()) return expected("text");
    into.record.*row.field = value.text();
    return {};
  }
  return read_special(key, value, into);
}

Status Loom1Reader::read_record(const JsonValue& value, Loom1Layer& into) {
  if (!value.is_object())
    return bad(value, into.location, cat("expected a layer, found ", value.describe()));
  for (const auto& [key, item] : value.members()) LOOM_TRY(read_member(key, item, into));
  return {};
}

Result<Loom1Layer> Loom1Reader::layer(const JsonValue& value, std::string location,
                                      std::string path, Nesting nesting) {
  Loom1Layer made;
  made.location = std::move(location);
  made.path = std::move(path);
  made.offset = base_ + value.offset();
  LOOM_TRY(read_record(value, made));
  if (nesting != Nesting::cell && made.record.is_remote_link) {
    return lacking(made,
                   "a link inside a container runs another cell's layer here, which Loom does not "
                   "do; put the layer itself in its place");
  }
  LOOM_TRY(configure_loom1(*this, made, extras ? extras(made.path) : Loom1Extras{}));
  for (const char* key : {"parallel_branches", "sequential_layers"}) {
    const JsonValue* list = value.find(key);
    if (list == nullptr || list->is_null() || (list->is_array() && list->elements().empty()))
      continue;
    const bool branches = made.config.def->kind == LayerKind::parallel;
    if (!made.config.def->container || branches != (key[0] == 'p')) {
      return bad(*list, cat(made.location, ".", key),
                 cat("a ", made.config.def->name, " has no such layers"));
    }
    LOOM_TRY(read_children(*list, made));
  }
  return made;
}

Status Loom1Reader::check_cell(const Loom1Layer& layer, const Loom1Grid& grid) const {
  const Loom1Record& r = layer.record;
  const struct {
    std::string_view axis;
    int64_t value, extent;
  } axes[] = {{"z", r.z, grid.depth},
              {"y", r.y, grid.rows},
              {"x", r.x, grid.cols},
              {"l", r.l, grid.layers_per_cell}};
  for (const auto& a : axes) {
    if (a.value >= 0 && a.value < a.extent) continue;
    return bad(layer, cat(a.axis, " is ", a.value, ", must be from 0 to ", a.extent - 1));
  }
  return {};
}

Result<Loom1Grid> Loom1Reader::grid(const JsonValue& root) {
  if (!root.is_object()) return bad(root, "", cat("expected a network, found ", root.describe()));
  Loom1Grid grid;
  const std::pair<std::string_view, int64_t*> extents[] = {
      {"depth", &grid.depth},
      {"rows", &grid.rows},
      {"cols", &grid.cols},
      {"layers_per_cell", &grid.layers_per_cell}};
  for (const auto& [key, value] : root.members()) {
    bool extent = false;
    for (const auto& e : extents) extent = extent || e.first == key;
    if (!extent && key != "id" && key != "layers") {
      return bad(value, printable(key),
                 "unknown key; a network has id, depth, rows, cols, layers_per_cell, layers");
    }
  }
  uint64_t cells = 1;
  for (const auto& [key, extent] : extents) {
    const JsonValue* value = root.find(key);
    if (value == nullptr) return bad(root, "", cat("\"", key, "\" is required, but absent"));
    const Result<int64_t> number = value->as_int("");
    if (!number.ok() || *number < 1) {
      return bad(*value, std::string(key),
                 cat("expected an integer above 0, found ", value->describe()));
    }
    *extent = *number;
    if (!checked_mul(cells, static_cast<uint64_t>(*number), cells) || cells > kMaxLoom1Cells)
      return bad(*value, std::string(key), cat("more than ", kMaxLoom1Cells, " cells"));
  }
  const JsonValue* layers = root.find("layers");
  if (layers == nullptr) return bad(root, "", "\"layers\" is required, but absent");
  if (!layers->is_array())
    return bad(*layers, "layers", cat("expected a list of layers, found ", layers->describe()));
  if (layers->elements().size() > cells) {
    return bad(*layers, "layers",
               cat(layers->elements().size(), " layers in a grid of ", cells, " cells"));
  }
  for (size_t i = 0; i < layers->elements().size(); ++i) {
    LOOM_ASSIGN(Loom1Layer made, layer(layers->elements()[i], cat("layers[", i, "]"),
                                       cat("layers.", i), Nesting::cell));
    LOOM_TRY(check_cell(made, grid));
    grid.layers.push_back(std::move(made));
  }
  return grid;
}

}  // namespace loom::core
