// Frames of "donate compute": a length (4 bytes, little-endian), then that many bytes of one JSON
// object in UTF-8. A length of 0 or above the most is an error after which nothing that follows
// can be told apart, so the connection ends.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

constexpr uint32_t kDonateFrameMost = 64u << 20;
constexpr size_t kDonateHead = 4;
using DonateHead = std::array<unsigned char, kDonateHead>;

DonateHead donate_head(uint32_t length);
// The length that a head announces. Errors: bad_file (0, or more than `most`).
Result<uint32_t> donate_length(const DonateHead& head, uint32_t most = kDonateFrameMost);
// Head and body in one piece. `json` has to be of a length that the other side takes.
std::string donate_frame(std::string_view json);
// To how many bytes the body of a frame may grow when it holds `have` of `length`: memory follows
// what arrived, not what was announced.
size_t donate_room(size_t have, size_t length);

}  // namespace loom::core
