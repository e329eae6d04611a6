// Which connection a full server closes to make room for a new one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace loom::core {

// How useful a connection is to its peer. A lower value gives way first.
enum class PeerState : uint8_t {
  unheard,  // no whole head of a request, or no whole frame, has come yet
  idle,     // between requests; no answer is awaited
  sending,  // a request is being read
  served,   // an answer is awaited; never closed to make room
};

struct PeerSilence {
  PeerState state = PeerState::served;
  // The beginning of the silence: the last byte of a body, the end of the last answer, or the start
  // of the connection. Bytes of an unfinished head do not count.
  std::chrono::steady_clock::time_point since;
};

// How long a peer may pause inside a request before it gives way, if the server is full.
constexpr std::chrono::milliseconds kPause{1000};

// The index of the connection to close: the lowest state, then the longest silence. None if all are
// served, or send without a pause.
std::optional<size_t> gives_way(std::span<const PeerSilence> peers,
                                std::chrono::steady_clock::time_point now);

}  // namespace loom::core
