// copy: an invocation moves one word from its location in x to its location in y. Steps are two's
// complement words, so a negative step counts down.
#include "backend/webgpu/kernels/kernels.hpp"
#include "ops/moves.hpp"

namespace loom::core::webgpu::kernels {
namespace {

constexpr Kernel kCopy{"copy", R"(
fn run(i: u32) {
  var rest = i;
  var from_ = p.x_first;
  var to = p.y_first;
  if (axes > 5u) { from_ += rest % p.e5 * p.a5; to += rest % p.e5 * p.b5; rest /= p.e5; }
  if (axes > 4u) { from_ += rest % p.e4 * p.a4; to += rest % p.e4 * p.b4; rest /= p.e4; }
  if (axes > 3u) { from_ += rest % p.e3 * p.a3; to += rest % p.e3 * p.b3; rest /= p.e3; }
  if (axes > 2u) { from_ += rest % p.e2 * p.a2; to += rest % p.e2 * p.b2; rest /= p.e2; }
  if (axes > 1u) { from_ += rest % p.e1 * p.a1; to += rest % p.e1 * p.b1; rest /= p.e1; }
  if (axes > 0u) { from_ += rest * p.a0; to += rest * p.b0; }
  y_put(to, x_word(from_));
}
)"};

}  // namespace

Status copy(Frame& frame, const CopyArgs& args) {
  if (args.x.dtype == DType::f64) return unsupported("copy: no kernel for f64");
  constexpr int64_t kMaxWords = int64_t{1} << 32;
  if (args.x.shape.count() >= kMaxWords || args.y.shape.count() >= kMaxWords) {
    return unsupported("copy: no kernel for 2^32 values");
  }
  static_assert(Shape::kMaxRank == 6);
  static constexpr std::string_view kExtents[] = {"e0", "e1", "e2", "e3", "e4", "e5"};
  static constexpr std::string_view kFrom[] = {"a0", "a1", "a2", "a3", "a4", "a5"};
  static constexpr std::string_view kTo[] = {"b0", "b1", "b2", "b3", "b4", "b5"};
  const CopyArgs merged_args = merged(args);
  Call call(frame, kCopy);
  call.words("x", merged_args.x.data)
      .words("y", merged_args.y.data, Access::write)
      .value("x_first", merged_args.x_first)
      .value("y_first", merged_args.y_first)
      .constant("axes", merged_args.rank);
  for (int k = 0; k < Shape::kMaxRank; ++k) {
    call.value(kExtents[k], std::max<int64_t>(merged_args.extent[k], 1))
        .value(kFrom[k], low_word(static_cast<uint64_t>(merged_args.x_step[k])))
        .value(kTo[k], low_word(static_cast<uint64_t>(merged_args.y_step[k])));
  }
  return call.beside().items(merged_args.count());
}

}  // namespace loom::core::webgpu::kernels
