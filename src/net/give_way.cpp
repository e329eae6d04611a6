#include "net/give_way.hpp"

#include <tuple>

namespace loom::core {

std::optional<size_t> gives_way(std::span<const PeerSilence> peers,
                                std::chrono::steady_clock::time_point now) {
  std::optional<size_t> first;
  for (size_t i = 0; i < peers.size(); ++i) {
    const PeerSilence& peer = peers[i];
    if (peer.state == PeerState::served) continue;
    if (peer.state == PeerState::sending && now - peer.since < kPause) continue;
    if (!first ||
        std::tie(peer.state, peer.since) < std::tie(peers[*first].state, peers[*first].since))
      first = i;
  }
  return first;
}

}  // namespace loom::core
