// Selects the connection that a full server closes to make room for a new one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace loom::core {

// The usefulness of a connection to its peer. A lower value is closed first.
enum class PeerState : uint8_t {
  unheard,  // no complete request head or frame yet
  idle,     // between requests; no answer pending
  sending,  // a request is being read
  served,   // an answer is pending; never closed to make room
};

struct PeerSilence {
  PeerState state = PeerState::served;
  // The start of the silence: the last byte of a body, the end of the last answer, or the start of
  // the connection. Bytes of an unfinished head do not count.
  std::chrono::steady_clock::time_point since;
};

// How long a peer may pause inside a request before a full server closes it.
constexpr std::chrono::milliseconds kPause{1000};

// The index of the connection to close: the lowest state, then the longest silence. None if all are
// served, or send without a pause.
std::optional<size_t> gives_way(std::span<const PeerSilence> peers,
                                std::chrono::steady_clock::time_point now);

}  // namespace loom::core
