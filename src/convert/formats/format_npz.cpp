// NumPy archives (.npz) with the parameters of a network by path.
#include "convert/formats/formats.hpp"
#include "io/arrays/npy.hpp"
#include "io/weights/torch_file.hpp"

#ifndef LOOM_WITHOUT_ARRAYS
#include "bridge/network_json.hpp"
#include "convert/unpacker.hpp"
#include "io/arrays/npy_write.hpp"
#include "train_io/weights/arrays_source.hpp"
#endif

namespace loom::core {
namespace {

bool is_npz_file(const Probe& file) {
  return is_npz(file.bytes) && !is_torch_file(file.bytes);
}

#ifndef LOOM_WITHOUT_ARRAYS
Result<OpenedModel> open_npz_model(const Probe& file) {
  OpenedModel model;
  model.format = "arrays of a network";
  LOOM_ASSIGN(model.network, open_npz_network(file.path, file.options.memory));
  return model;
}

NpyOutput text_array(std::string name, const std::string& text) {
  return {std::move(name),
          ElementType::u8,
          {static_cast<int64_t>(text.size())},
          std::as_bytes(std::span(text))};
}

// The parameters by path. loom/network and loom/model (text as bytes), input/shift and input/scale
// describe the network, so that the file can be opened again.
Status write_network_npz(const WriteRequest& out) {
  const NetworkSource& source = *out.model.network;
  LOOM_ASSIGN(Unpacker unpacker, Unpacker::create(source, out.options));
  LOOM_ASSIGN(const Normalization normalization, normalization_of(source));
  std::vector<NpyOutput> arrays;
  const std::string network = write_network(source.spec);
  const JsonValue* section = source.sections.find("model");
  const std::string model = section == nullptr ? "" : dump_json(*section);
  arrays.push_back(text_array(std::string(kNpzNetwork), network));
  if (section != nullptr) arrays.push_back(text_array(std::string(kNpzModel), model));
  for (const auto& [name, values] : {std::pair("input/shift", &normalization.shift),
                                     std::pair("input/scale", &normalization.scale)}) {
    if (values->empty()) continue;
    arrays.push_back({name,
                      ElementType::f32,
                      {static_cast<int64_t>(values->size())},
                      std::as_bytes(std::span(*values))});
  }
  for (size_t i = 0; i < unpacker.params().size(); ++i) {
    const Param& param = unpacker.params()[i];
    arrays.push_back(
        {param.path, ElementType::f32, extents_of(param.spec.shape), {}, [&unpacker, i] {
           return unpacker.values(i);
         }});
  }
  return write_npz(out.path, arrays);
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_ARRAYS
const Format kNpzFormat = {.files = ".npz files",
                           .is = is_npz_file,
                           .open = open_npz_model,
                           .extension = ".npz",
                           .holds = "dwmn",
                           .write_network = write_network_npz,
                           .networks = true};
#else
const Format kNpzFormat = {.files = ".npz files",
                           .how = LOOM_BUILD_WITH("LOOM_ARRAYS=ON"),
                           .left_out = true,
                           .is = is_npz_file,
                           .extension = ".npz",
                           .networks = true};
#endif

}  // namespace loom::core
