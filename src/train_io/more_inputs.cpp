// Further inputs of samples, for networks that have several: arrays of a file, by the names of
// inputs.
#include "base/text.hpp"
#include "train_io/wanted.hpp"

namespace loom::core {
namespace {

Status set_one(const ArrayView& array, const InputSpec& spec, Dataset& data) {
  const bool per_sample = !array.shape.empty() && array.shape[0] == data.samples;
  if (!per_sample || array.count() != data.samples * spec.shape.count()) {
    return bad_file(cat("the input '", printable(spec.name), "' is ", array.shape_text(),
                        ", must be ", spec.shape.after(data.samples).str()),
                    array.where);
  }
  ExtraInput input{spec.name, spec.shape, {}, {}};
  const bool any = spec.ids == InputSchema::kAnyIds;
  const bool numbers = any ? !is_whole(array.type) : spec.ids == 0;
  if (numbers) {
    LOOM_ASSIGN(input.values, array_f32(array));
  } else {
    LOOM_ASSIGN(input.ids, array_i32(array));
  }
  for (size_t i = 0; i < input.ids.size() && !any; ++i) {
    if (input.ids[i] >= 0 && input.ids[i] < spec.ids) continue;
    return bad_file(cat("the input '", printable(spec.name), "': id ", input.ids[i], " at ", i,
                        " must be from 0 to ", spec.ids - 1),
                    array.where);
  }
  data.more.push_back(std::move(input));
  return {};
}

}  // namespace

Result<std::vector<ArrayView>> find_more(ArrayFile& file, const InputSchema& schema,
                                         const std::string& path) {
  std::vector<ArrayView> arrays;
  if (file.kind() == ArrayFile::Kind::idx || file.kind() == ArrayFile::Kind::npy)
    LOOM_TRY(one_input(schema, "this file", path));
  for (const InputSpec& spec : schema.more) {
    LOOM_ASSIGN(ArrayView array, file.find(spec.name));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Status set_more(const std::vector<ArrayView>& arrays, const InputSchema& schema, Dataset& data) {
  for (size_t i = 0; i < arrays.size(); ++i) LOOM_TRY(set_one(arrays[i], schema.more[i], data));
  return {};
}

Status one_input(const InputSchema& schema, std::string_view what, const std::string& path) {
  if (schema.more.empty()) return {};
  std::vector<std::string> names;
  for (const InputSpec& spec : schema.more) names.emplace_back(printable(spec.name));
  return invalid(
      cat("the network takes ", names.size() + 1, " inputs, ", what,
          " holds one; give an NPZ or safetensors file that has the others as ", join(names, ", ")),
      path);
}

}  // namespace loom::core
