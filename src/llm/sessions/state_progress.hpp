// StateProgress: how many tokens the recurrent states of each sequence of a session have read. A
// state cannot be rewound to any position: the session has the current one and, if it is ragged,
// the one before the last pass. Rewinding takes the nearest earlier one of these, or else the
// start. The tokens from there on are then read again before the next pass.
#pragma once

#include <vector>

#include "grid/session.hpp"

namespace loom::core {

class StateProgress {
 public:
  StateProgress(const Session& session, int64_t sequences)
      : active_(session.has_states()), sequences_(static_cast<size_t>(sequences)) {}

  // Whether the network has recurrent states; nothing has an effect without them.
  bool active() const { return active_; }
  // The number of tokens that the current state has read.
  int64_t position(int64_t sequence) const { return at(sequence).current; }
  // Records that a pass has read `count` tokens, after Session::keep_states().
  void advance(const Session& session, int64_t sequence, int64_t count) {
    State& s = at(sequence);
    s.before = session.ragged() ? s.current : -1;
    s.current += count;
  }
  // Drops everything from `position` on.
  void rewind(Session& session, int64_t sequence, int64_t position) {
    State& s = at(sequence);
    if (!active_ || s.current <= position) return;
    const bool undo = s.before >= 0 && s.before <= position;
    if (undo) session.undo_states(sequence);
    s = {undo ? s.before : 0, -1};
  }
  // Sets the position of states that were copied or loaded.
  void set(int64_t sequence, int64_t position) { at(sequence) = {position, -1}; }
  void reset() { sequences_.assign(sequences_.size(), State{}); }

 private:
  struct State {
    int64_t current = 0, before = -1;  // -1 means that no earlier state exists
  };
  State& at(int64_t sequence) { return sequences_[static_cast<size_t>(sequence)]; }
  const State& at(int64_t sequence) const { return sequences_[static_cast<size_t>(sequence)]; }
  bool active_;
  std::vector<State> sequences_;
};

}  // namespace loom::core
