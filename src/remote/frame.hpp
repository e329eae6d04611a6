// Frames of "donate compute": a length (4 bytes, little-endian), then that many bytes of one JSON
// object in UTF-8. After a length of 0 or above the maximum, later bytes cannot be interpreted, so
// the connection ends.
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
// The buffer size for a frame with `have` of `length` bytes: memory follows the received bytes, not
// the announced length.
size_t donate_room(size_t have, size_t length);

}  // namespace loom::core
