#include "backend/webgpu/kernels/places.hpp"

namespace loom::core::webgpu {
namespace {

constexpr std::string_view kPlaced = R"(
fn position_of(row: u32) -> u32 { return u32(places_at(row * p.places_s + 1u)); }
fn group_of(row: u32, group: u32) -> u32 {
  if (paged == 0u) { return group; }
  return u32(places_at(row * p.places_s + 2u + group));
}
fn base_of(row: u32) -> u32 { return u32(places_at(row * p.places_s)) * p.sequence_words; }
)";

constexpr std::string_view kInOrder = R"(
fn position_of(row: u32) -> u32 {
  return p.first + select(row, row % p.run_length, p.run_length > 0u);
}
fn group_of(row: u32, group: u32) -> u32 { return group; }
fn base_of(row: u32) -> u32 { return 0u; }
)";

}  // namespace

Call& at_positions(Call& call, const Tensor& row_positions, int64_t first, int64_t run_length,
                   const KvCache* cache) {
  if (row_positions.empty())
    return call.text(kInOrder).value("first", first).value("run_length", run_length);
  return call.text(kPlaced)
      .ids("places", row_positions)
      .value("sequence_words", cache != nullptr ? cache->sequence_bytes() / 4 : 0)
      .constant("paged", int64_t{row_positions.cols() > 2});
}

}  // namespace loom::core::webgpu
