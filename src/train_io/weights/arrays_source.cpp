#include "train_io/weights/arrays_source.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "io/arrays/array_file.hpp"
#include "train_io/file_memory.hpp"

namespace loom::core {
namespace {

class ArraysSource : public NetworkSource {
 public:
  ArraysSource(NetworkSpec s, ArrayFile file, const MemoryBudget& memory)
      : NetworkSource(std::move(s)), file_(std::move(file)), memory_(memory) {}
  Status read_model();
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  Result<std::vector<float>> input(const char* name);
  Status read_normalization();

  mutable ArrayFile file_;  // unpacks an array when it is asked for
  MemoryBudget memory_;
};

// Text that an array of bytes holds. Errors: not_found (no such array).
Result<std::string_view> text_of(ArrayFile& file, std::string_view name) {
  LOOM_ASSIGN(const ArrayView view, file.find(name));
  if (view.type != ElementType::u8)
    return bad_file("is not text: its type must be uint8", view.where);
  return std::string_view(reinterpret_cast<const char*>(view.data.data()), view.data.size());
}

// Values of an array as floats, with what they take of the budget.
struct Floats {
  std::vector<float> values;
  MemoryShare memory;
};
Result<Floats> floats_of(const ArrayView& view, const MemoryBudget& memory) {
  Floats out;
  const uint64_t bytes = static_cast<uint64_t>(view.count()) * sizeof(float);
  LOOM_ASSIGN(out.memory, memory.take(bytes, "the values", view.where));
  LOOM_ASSIGN(out.values, array_f32(view));
  return out;
}

// Empty where the file has no such array.
Result<std::vector<float>> ArraysSource::input(const char* name) {
  const Result<ArrayView> view = file_.find(name);
  if (!view.ok()) {
    if (view.error().code == Code::not_found) return std::vector<float>();
    return view.error();
  }
  // As many as one sample has; the budget has no part in so few.
  if (view->count() != spec.input.count()) {
    return bad_file(cat("is ", view->shape_text(), ", but a sample of the network has ",
                        spec.input.count(), " values"),
                    view->where);
  }
  return array_f32(*view);
}

Status ArraysSource::read_normalization() {
  Normalization found;
  LOOM_ASSIGN(found.shift, input("input/shift"));
  LOOM_ASSIGN(found.scale, input("input/scale"));
  if (found.shift.size() != found.scale.size())
    return bad_file("has only one of input/shift and input/scale; give both or neither", path);
  keep_normalization(std::move(found), *this);
  return {};
}

// The training task of the network, and the normalization of its inputs, if the file has them.
Status ArraysSource::read_model() {
  LOOM_TRY(read_normalization());
  const Result<std::string_view> model = text_of(file_, kNpzModel);
  if (!model.ok()) return model.error().code == Code::not_found ? Status{} : model.error();
  const std::string where = cat(path, ": ", kNpzModel);
  LOOM_TRY(check_json(*model, memory_, where));
  LOOM_ASSIGN(JsonValue section, parse_json(*model, where));
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
  LOOM_ASSIGN(Floats floats, floats_of(view, memory_));
  SourceWeight weight;
  const int64_t cols = param.spec.matrix() ? want[1] : 1;
  const auto kept = std::make_shared<const Floats>(std::move(floats));
  weight.rows = [kept, cols](int64_t first, int64_t count, float* out) -> Status {
    std::copy_n(kept->values.data() + first * cols, count * cols, out);
    return {};
  };
  return weight;
}

}  // namespace

Result<std::unique_ptr<NetworkSource>> open_npz_network(const FileRef& path,
                                                        const MemoryBudget& memory) {
  LOOM_ASSIGN(ArrayFile file, ArrayFile::open(path, memory));
  const Result<std::string_view> network = text_of(file, kNpzNetwork);
  if (!network.ok()) {
    if (network.error().code != Code::not_found) return network.error();
    return bad_file(
        "holds arrays, but does not say of which network; if they are weights, give the "
        "description, and this file with --weights",
        path);
  }
  const std::string where = cat(path, ": ", kNpzNetwork);
  LOOM_TRY(check_json(*network, memory, where));
  LOOM_ASSIGN(NetworkSpec spec, parse_network(*network, where));
  auto source = std::make_unique<ArraysSource>(std::move(spec), std::move(file), memory);
  source->path = path;
  LOOM_TRY(source->read_model());
  return std::unique_ptr<NetworkSource>(std::move(source));
}

Result<std::unique_ptr<NetworkSource>> open_arrays(const FileRef& path, NetworkSpec spec,
                                                   const MemoryBudget& memory) {
  LOOM_ASSIGN(ArrayFile file, ArrayFile::open(path, memory));
  auto source = std::make_unique<ArraysSource>(std::move(spec), std::move(file), memory);
  source->path = path;
  LOOM_TRY(source->read_model());
  return std::unique_ptr<NetworkSource>(std::move(source));
}

}  // namespace loom::core
