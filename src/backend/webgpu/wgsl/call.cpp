#include <cstring>

#include "backend/webgpu/wgsl/frame.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {

Call& Call::fail(std::string_view what) {
  status_ = make_error(Code::internal, cat(work_.kernel.name, ": ", what));
  return *this;
}

Call& Call::add(Operand operand) {
  if (work_.operand_count == Work::kMaxOperands) return fail("too many operands");
  if (operand.bound() && operand.slice.buffer == nullptr) {
    fail(cat(operand.name, " is not in the device's memory"));
  }
  work_.operands[static_cast<size_t>(work_.operand_count++)] = operand;
  return *this;
}

Call& Call::tensor(std::string_view name, const Tensor& t, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  if (t.empty()) {
    operand.view = Operand::View::absent;
    return add(operand);
  }
  operand.view = t.dtype == DType::i32 ? Operand::View::i32 : Operand::View::f32;
  operand.slice = frame_->memory_->find(t.data);
  operand.stride = t.row_stride;
  if (t.dtype != DType::f32 && t.dtype != DType::i32) {
    status_ =
        unsupported(cat(work_.kernel.name, ": no kernel for ", name, " of ", dtype_name(t.dtype)));
  }
  return add(operand);
}

Call& Call::ids(std::string_view name, const Tensor& t, Access access) {
  if (!t.empty()) return tensor(name, t, access);
  Operand operand;
  operand.name = name;
  operand.view = Operand::View::absent_ids;
  return add(operand);
}

Call& Call::words(std::string_view name, const void* begin, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.view = begin == nullptr ? Operand::View::absent : Operand::View::words;
  if (begin != nullptr) {
    operand.slice = frame_->memory_->find(static_cast<const std::byte*>(begin));
  }
  return add(operand);
}

Call& Call::words(std::string_view name, const BufferSlice& slice, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.view = Operand::View::words;
  operand.slice = slice;
  return add(operand);
}

Call& Call::floats(std::string_view name, const float* begin, Access access) {
  return floats(name, frame_->memory_->find(reinterpret_cast<const std::byte*>(begin)), access);
}

Call& Call::floats(std::string_view name, const BufferSlice& slice, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.slice = slice;
  return add(operand);
}

Call& Call::quads(std::string_view name, const void* begin) {
  return quads(name, frame_->memory_->find(static_cast<const std::byte*>(begin)));
}

Call& Call::quads(std::string_view name, const BufferSlice& slice) {
  Operand operand;
  operand.name = name;
  operand.view = Operand::View::quads;
  operand.slice = slice;
  return add(operand);
}

Call& Call::add(Value value) {
  if (work_.value_count == Work::kMaxValues) return fail("too many values");
  work_.values[static_cast<size_t>(work_.value_count++)] = value;
  return *this;
}

Call& Call::value(std::string_view name, int64_t v) {
  if (v < INT32_MIN || v > UINT32_MAX) {
    status_ = unsupported(cat(work_.kernel.name, ": ", name, " = ", v, " does not fit 32 bits"));
  }
  return add(Value{name, false, static_cast<uint32_t>(v)});
}

Call& Call::value(std::string_view name, float v) {
  Value value{name, true, 0};
  std::memcpy(&value.bits, &v, sizeof(v));
  return add(value);
}

Call& Call::constant(std::string_view name, int64_t v) {
  if (work_.constant_count == Work::kMaxConstants) return fail("too many constants");
  work_.constants[static_cast<size_t>(work_.constant_count++)] = {name, v};
  return *this;
}

Call& Call::text(std::string_view wgsl) {
  if (work_.text_count == Work::kMaxTexts) return fail("too many texts");
  work_.texts[static_cast<size_t>(work_.text_count++)] = wgsl;
  return *this;
}

Call& Call::lanes(int n) {
  work_.lanes = n;
  return *this;
}

Call& Call::beside(int64_t shared, bool any) {
  work_.shared = shared;
  work_.any_lanes = any;
  return *this;
}

Status Call::items(int64_t n) {
  if (n <= 0) return status_;
  return lines(Form::items, n, ceil_div(n, work_.lanes));
}

// Workgroups in a line, or in several lines if a dimension cannot hold them.
Status Call::lines(Form form, int64_t n, int64_t groups) {
  const int64_t width = std::min(groups, frame_->adapter().max_workgroups);
  value("items", n);
  value("width", width);
  return run(form, width, ceil_div(groups, width), 1);
}

Status Call::spread(int64_t n) {
  if (n <= 0) return status_;
  // Sixteen reads in flight copy at 89 % of the memory's rate on an H200, four at 63 %. If there
  // are too few values to fill the device that way, one each.
  const bool is_large = n > int64_t{1} << 20;
  const int64_t each = is_large ? 16 : 1;
  lanes(is_large ? 128 : n > 1 << 16 ? 256 : 64).constant("each", each);
  return lines(Form::spread, n, ceil_div(n, each * work_.lanes));
}

Status Call::rows(int64_t n) {
  if (n <= 0) return status_;
  return lines(Form::rows, n, n);
}

Status Call::groups(int64_t x, int64_t y, int64_t z) {
  if (x <= 0 || y <= 0 || z <= 0) return status_;
  return run(Form::groups, x, y, z);
}

Status Call::run(Form form, int64_t x, int64_t y, int64_t z) {
  LOOM_TRY(std::move(status_));
  const int64_t limit = frame_->adapter().max_workgroups;
  if (x > limit || y > limit || z > limit) {
    return unsupported(cat(work_.kernel.name, ": ", x, " x ", y, " x ", z,
                           " workgroups, the device has ", limit,
                           " per dimension; use smaller batches, or the CPU"));
  }
  work_.form = form;
  const int64_t groups[3] = {x, y, z};
  for (int i = 0; i < 3; ++i) work_.groups[i] = static_cast<uint32_t>(groups[i]);
  return frame_->add(work_);
}

}  // namespace loom::core::webgpu
