// Evaluator: core::evaluate with public tensors.
#include "loom/evaluator.hpp"

#include <cstring>

#include "api/engine/impl.hpp"
#include "base/left_out.hpp"
#include "base/text.hpp"
#include "convert/convert.hpp"

#ifndef LOOM_WITHOUT_ONNX
#include "onnx/interpreter/evaluator.hpp"
#ifndef LOOM_WITHOUT_TFLITE
#include "backend/reference/reference.hpp"
#include "formats/tflite/import.hpp"
#include "onnx/interpreter/folder.hpp"
#endif
#endif

namespace loom {

#ifndef LOOM_WITHOUT_ONNX

struct Evaluator::Impl {
  Engine engine;
  core::MappedFile file;  // constants may view its bytes; empty if the graph owns them
  core::evaluate::Evaluator graph;
  std::vector<ValueInfo> inputs, outputs;
};

namespace {

using core::OnnxType;

// The types that both sides have; a boolean is a byte.
struct SharedType {
  OnnxType onnx;
  DType dtype;
};
const SharedType kSharedTypes[] = {
    {OnnxType::f32, DType::float32},   {OnnxType::f64, DType::float64},
    {OnnxType::f16, DType::float16},   {OnnxType::bf16, DType::bfloat16},
    {OnnxType::i64, DType::int64},     {OnnxType::i32, DType::int32},
    {OnnxType::i16, DType::int16},     {OnnxType::i8, DType::int8},
    {OnnxType::u64, DType::uint64},    {OnnxType::u32, DType::uint32},
    {OnnxType::u16, DType::uint16},    {OnnxType::u8, DType::uint8},
    {OnnxType::boolean, DType::uint8},
};
const SharedType* shared_type(OnnxType type) {
  for (const SharedType& row : kSharedTypes) {
    if (row.onnx == type) return &row;
  }
  return nullptr;
}

ValueInfo value_info(const core::OnnxValue& v) {
  ValueInfo info;
  info.name = v.name;
  info.type = core::onnx_type_name(v.type);
  if (v.kind == core::OnnxKind::sequence) info.type = core::cat("sequence(", info.type, ")");
  if (v.kind == core::OnnxKind::optional) info.type = core::cat("optional(", info.type, ")");
  if (const SharedType* type = shared_type(v.type)) info.dtype = type->dtype;
  info.known_rank = v.has_shape;
  for (const core::OnnxDim& d : v.shape) info.shape.push_back(d.extent);
  return info;
}

Result<core::evaluate::Slot> slot_of(core::evaluate::Memory& memory, const Tensor& tensor,
                                     const core::OnnxValue& want) {
  const SharedType* type = shared_type(want.type);
  if (want.kind != core::OnnxKind::tensor || type == nullptr)
    return core::unsupported(
        core::cat("input '", core::printable(want.name), "' is not a tensor of a supported type"));
  if (type->dtype != tensor.dtype())
    return core::invalid(core::cat("input '", core::printable(want.name), "' is ",
                                   core::onnx_type_name(want.type), " in the file, ",
                                   dtype_name(tensor.dtype()), " given"));
  LOOM_ASSIGN(const Tensor dense, tensor.contiguous() ? Result<Tensor>(tensor) : tensor.copied());
  LOOM_ASSIGN(core::evaluate::Value v,
              core::evaluate::Value::make(memory, want.type, dense.shape()));
  if (v.bytes() > 0) std::memcpy(v.data<std::byte>(), dense.data(), static_cast<size_t>(v.bytes()));
  return core::evaluate::Slot::of(std::move(v));
}

Result<Tensor> tensor_of_slot(const core::evaluate::Slot& slot, const std::string& name) {
  const SharedType* type = shared_type(slot.tensor.type);
  if (slot.kind != core::evaluate::Slot::Kind::tensor || type == nullptr)
    return core::unsupported(
        core::cat("output '", core::printable(name), "' is not a tensor of a supported type"));
  auto held = std::make_shared<core::evaluate::Value>(slot.tensor);
  const core::evaluate::Value& v = *held;
  return Tensor::borrow(v.data<std::byte>(), type->dtype, v.dims, {}, std::move(held));
}

Result<Engine> engine_or_shared(const Engine* engine) {
  return engine != nullptr ? Result<Engine>(*engine) : Engine::shared();
}

}  // namespace

// The graph of a file; `held` keeps its bytes if the graph needs them.
static Result<core::evaluate::Evaluator> graph_of(const core::FileRef& file, Engine::Impl& on,
                                                  core::MappedFile& held) {
#ifndef LOOM_WITHOUT_TFLITE
  LOOM_ASSIGN(core::MappedFile mapped, core::MappedFile::open(file));
  if (core::is_tflite(mapped.bytes())) {
    LOOM_ASSIGN(const core::TfliteModel read, core::parse_tflite(mapped.bytes(), file));
    LOOM_ASSIGN(
        core::TfliteAsOnnx translated,
        core::tflite_as_onnx(read, file,
                             {.folder = core::evaluate::evaluating_folder(core::reference_ops())}));
    held = std::move(mapped);
    return core::evaluate::Evaluator::of(std::move(translated.model), core::cpu_ops(on.isa),
                                         on.pool);
  }
#else
  (void)held;
#endif
  return core::evaluate::Evaluator::load(file, core::cpu_ops(on.isa), on.pool);
}

// Common part of both load() functions.
static Result<std::shared_ptr<Evaluator::Impl>> load_graph(const core::FileRef& file,
                                                           const Engine& engine) {
  Engine::Impl& on = engine.impl();
  core::MappedFile held;
  Result<core::evaluate::Evaluator> graph = graph_of(file, on, held);
  if (!graph.ok()) return core::not_a_graph(file).value_or(graph.error());
  auto impl = std::make_shared<Evaluator::Impl>(
      Evaluator::Impl{engine, std::move(held), std::move(*graph), {}, {}});
  for (const core::OnnxValue& v : impl->graph.inputs()) impl->inputs.push_back(value_info(v));
  for (const core::OnnxValue& v : impl->graph.outputs()) impl->outputs.push_back(value_info(v));
  return impl;
}

Result<Evaluator> Evaluator::load(const std::string& path, const Engine* engine) {
  LOOM_ASSIGN(const Engine on, engine_or_shared(engine));
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, load_graph(path, on));
  return Evaluator(std::move(impl));
}

Result<Evaluator> Evaluator::load(const FileBytes& file, const Engine* engine) {
  LOOM_ASSIGN(const Engine on, engine_or_shared(engine));
  LOOM_ASSIGN(const core::FileRef ref, core::file_ref(file, true, on.impl().budget()));
  LOOM_ASSIGN(std::shared_ptr<Impl> impl, load_graph(ref, on));
  return Evaluator(std::move(impl));
}

const std::vector<ValueInfo>& Evaluator::inputs() const {
  return impl_->inputs;
}
const std::vector<ValueInfo>& Evaluator::outputs() const {
  return impl_->outputs;
}

Result<std::vector<Tensor>> Evaluator::run(std::span<const Tensor> inputs) const {
  const std::vector<core::OnnxValue>& want = impl_->graph.inputs();
  if (inputs.size() != want.size())
    return core::invalid(
        core::cat("the graph takes ", want.size(), " inputs, ", inputs.size(), " given"));
  std::vector<core::evaluate::Slot> slots;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LOOM_ASSIGN(core::evaluate::Slot slot, slot_of(impl_->graph.memory(), inputs[i], want[i]));
    slots.push_back(std::move(slot));
  }
  std::vector<core::evaluate::Slot> made;
  {
    const std::lock_guard turn(impl_->engine.impl().turn);
    LOOM_ASSIGN(made, impl_->graph.run(std::move(slots)));
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < made.size(); ++i) {
    LOOM_ASSIGN(Tensor tensor, tensor_of_slot(made[i], impl_->outputs[i].name));
    out.push_back(std::move(tensor));
  }
  return out;
}

#else

struct Evaluator::Impl {
  std::vector<ValueInfo> none;
};

Result<Evaluator> Evaluator::load(const std::string&, const Engine*) {
  return core::left_out_of_build("evaluator of ONNX files", LOOM_BUILD_WITH("LOOM_ONNX=ON"));
}
Result<Evaluator> Evaluator::load(const FileBytes&, const Engine*) {
  return core::left_out_of_build("evaluator of ONNX files", LOOM_BUILD_WITH("LOOM_ONNX=ON"));
}
const std::vector<ValueInfo>& Evaluator::inputs() const {
  return impl_->none;
}
const std::vector<ValueInfo>& Evaluator::outputs() const {
  return impl_->none;
}
Result<std::vector<Tensor>> Evaluator::run(std::span<const Tensor>) const {
  return core::left_out_of_build("evaluator of ONNX files", LOOM_BUILD_WITH("LOOM_ONNX=ON"));
}

#endif

}  // namespace loom
