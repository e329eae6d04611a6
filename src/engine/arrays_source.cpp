#include "engine/arrays_source.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "io/array_file.hpp"
#include "io/machine_memory.hpp"

namespace loom {
namespace {

class ArraysSource : public NetworkSource {
 public:
  ArraysSource(NetworkSpec s, ArrayFile file)
      : NetworkSource(std::move(s)), file_(std::move(file)) {}
  Status read_model();
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  Status add_input(const char* name);

  mutable ArrayFile file_;  // unpacks an array when it is asked for
};

// Text that an array of bytes holds.
Result<std::string> text_of(ArrayFile& file, std::string_view name) {
  LOOM_ASSIGN(const ArrayView view, file.find(name));
  if (view.type != ElementType::u8)
    return bad_file("is no text: its type must be uint8", view.where);
  return std::string(reinterpret_cast<const char*>(view.data.data()), view.data.size());
}

Status ArraysSource::add_input(const char* name) {
  const Result<ArrayView> view = file_.find(name);
  if (!view.ok()) return {};
  LOOM_ASSIGN(std::vector<float> values, array_f32(*view));
  EntityOutput out;
  out.path = name;
  out.shape = Shape{static_cast<int64_t>(values.size())};
  const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  out.data = [kept]() -> Result<std::span<const std::byte>> {
    return std::as_bytes(std::span(*kept));
  };
  blobs.push_back(std::move(out));
  return {};
}

// What the network was trained for, and how its inputs are normalized, where the file says it.
Status ArraysSource::read_model() {
  LOOM_TRY(add_input("input/shift"));
  LOOM_TRY(add_input("input/scale"));
  const Result<std::string> model = text_of(file_, kNpzModel);
  if (!model.ok()) return {};
  LOOM_ASSIGN(JsonValue section, parse_json(*model, cat(path, ": ", kNpzModel)));
  sections.add("model", std::move(section));
  return {};
}

Result<SourceWeight> ArraysSource::weight(const Param& param) const {
  LOOM_ASSIGN(const ArrayView view, file_.find(param.path));
  const Shape& want = param.spec.shape;
  bool same = static_cast<int>(view.shape.size()) == want.rank();
  for (int axis = 0; same && axis < want.rank(); ++axis)
    same = view.shape[static_cast<size_t>(axis)] == want[axis];
  if (!same) {
    return bad_file(cat("is ", view.shape_text(), ", the network wants ", want.str()), view.where);
  }
  LOOM_ASSIGN(std::vector<float> values, array_f32(view));
  SourceWeight weight;
  const int64_t cols = param.spec.matrix() ? want[1] : 1;
  const auto kept = std::make_shared<const std::vector<float>>(std::move(values));
  weight.rows = [kept, cols](int64_t first, int64_t count, float* out) -> Status {
    std::copy_n(kept->data() + first * cols, count * cols, out);
    return {};
  };
  return weight;
}

}  // namespace

Result<std::unique_ptr<NetworkSource>> open_npz_network(const std::string& path) {
  LOOM_ASSIGN(ArrayFile file, ArrayFile::open(path, default_budget()));
  const Result<std::string> network = text_of(file, kNpzNetwork);
  if (!network.ok()) {
    return bad_file(
        "holds arrays, but does not say of which network; where they are weights, give the "
        "description, and this file with --weights",
        path);
  }
  LOOM_ASSIGN(NetworkSpec spec, parse_network(*network, cat(path, ": ", kNpzNetwork)));
  auto source = std::make_unique<ArraysSource>(std::move(spec), std::move(file));
  source->path = path;
  LOOM_TRY(source->read_model());
  return std::unique_ptr<NetworkSource>(std::move(source));
}

Result<std::unique_ptr<NetworkSource>> open_arrays(const std::string& path, NetworkSpec spec) {
  LOOM_ASSIGN(ArrayFile file, ArrayFile::open(path, default_budget()));
  auto source = std::make_unique<ArraysSource>(std::move(spec), std::move(file));
  source->path = path;
  LOOM_TRY(source->read_model());
  return std::unique_ptr<NetworkSource>(std::move(source));
}

}  // namespace loom
