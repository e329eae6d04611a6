// Masked sessions: sequences of an input may end early. The lengths are set before a pass and
// become a mask. Each pass is independent.
#include "base/text.hpp"
#include "grid/session_impl.hpp"
#include "grid/traced.hpp"

namespace loom::core {

// Mask memory for the largest input; passes use the part for their input.
Status Session::Impl::make_mask() {
  if (!options.masked) return {};
  MaskedRows& m = masked.emplace();
  if (max_input.rank() < 2 || options.ragged || network->has_links())
    return invalid("lengths are for networks whose samples have positions, without feedback links");
  const DType compute = recorder->ops().compute;
  const int64_t rows = max_input[0] * max_input[1];
  LOOM_ASSIGN(m.mask_memory, Buffer::allocate(plain_bytes(compute, Shape{rows})));
  LOOM_ASSIGN(m.ends_memory, Buffer::allocate(4 * (rows + round_up(max_input[0], 16))));
  shape_mask(max_input);
  return {};
}

void Session::Impl::shape_mask(const Shape& shape) {
  MaskedRows& m = *masked;
  m.mask = zeroed(m.mask_memory.data(), recorder->ops().compute, Shape{shape[0], shape[1]});
  m.ends.last = zeroed(m.ends_memory.data(), DType::i32, Shape{shape[0]});
  m.ends.reversed = zeroed(m.ends_memory.data() + 4 * round_up(max_input[0], 16), DType::i32,
                           Shape{shape[0] * shape[1]});
}

// Computes the mask of the lengths for an input of this shape.
Status Session::Impl::receive_lengths(const Shape& shape) {
  if (!masked) return {};
  MaskedRows& m = *masked;
  if (shape.rank() < 2 || shape[0] > max_input[0] || shape[1] > max_input[1])
    return invalid(cat("an input ", shape.str(), " does not fit the session, which was made for ",
                       max_input.str()));
  for (const int64_t length : m.lengths) {
    if (length > shape[1])
      return invalid(cat("a sequence has ", length, " positions, but the input only ", shape[1]));
  }
  shape_mask(shape);
  mark_lengths(m.mask, m.ends, m.lengths);
  for (const Tensor& t : {m.mask, m.ends.last, m.ends.reversed})
    LOOM_TRY(to_device(recorder->ops(), t));
  return {};
}

Status Session::set_lengths(std::span<const int64_t> lengths) {
  Impl& s = *impl_;
  if (!s.masked) return invalid("this session was made without lengths");
  for (const int64_t length : lengths) {
    if (length < 1) return invalid(cat("a sequence of ", length, " positions; one at least"));
  }
  s.masked->lengths.assign(lengths.begin(), lengths.end());
  return {};
}

}  // namespace loom::core
