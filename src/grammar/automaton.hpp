// Automaton: runs a Program over bytes. A configuration is a position in the program and a stack. A
// state is a set of configurations that all wait for a byte. Stacks are linked frames, each stored
// once, so equal stacks have equal numbers.
//
// There are two kinds of states. Exact ones follow a text. Abstract ones answer what may follow
// within a limited number of bytes: a counter that cannot run out within them is endless. So the
// two thousand positions inside of a string of at most 2000 characters are one state. Abstract
// states are cached, with their successor for each byte.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/program.hpp"

namespace loom::core::grammar {

struct Config {
  int32_t at = 0;      // an instruction that reads a byte
  int32_t stack = -1;  // a frame; -1 means none
  auto operator<=>(const Config&) const = default;
};

// Ascending, without repeats. `ends`: the text may end here.
struct ConfigSet {
  std::vector<Config> configs;
  bool ends = false;
};

class Automaton {
 public:
  static constexpr int32_t kDead = -1;
  // horizon: the number of bytes that an abstract state covers.
  Automaton(std::shared_ptr<const Program> program, uint32_t horizon);

  ConfigSet start();
  // The successor for one byte; empty if the byte cannot follow.
  ConfigSet step(const ConfigSet& from, uint8_t byte);

  // The abstract state of an exact one, and the successor of an abstract state for a byte (or
  // kDead).
  int32_t abstract(const ConfigSet& exact);
  int32_t next(int32_t state, uint8_t byte) {
    const int32_t known = states_[static_cast<size_t>(state)].to[byte];
    return known != kUnknown ? known : find_next(state, byte);
  }
  size_t states() const { return states_.size(); }
  // Drops abstract states, and frames that `live` does not need.
  void forget(ConfigSet& live);
  // The limits were exceeded: results must not be used.
  bool overflowed() const { return overflowed_; }
  bool crowded() const;  // time to forget()
  // Limits the work until the next call of this; beyond it, overflowed() is true.
  void limit_visits(size_t max) { visits_left_ = max; }

 private:
  static constexpr int32_t kUnknown = -2;
  struct Frame {
    int32_t parent = -1;
    int32_t at = 0;               // a loop, or the return address of a call
    uint32_t need = 0, left = 0;  // minimum and maximum of remaining iterations; kEndless
    int32_t depth = 0;
    bool operator==(const Frame&) const = default;
  };
  struct FrameHash {
    size_t operator()(const Frame& f) const;
  };
  struct ConfigHash {
    size_t operator()(const std::vector<Config>& v) const;
  };
  struct State {
    ConfigSet set;
    std::vector<int32_t> to;
  };

  int32_t frame(Frame f);  // its number; -1 if too deep
  int32_t abstract_frame(int32_t id);
  void visit(int32_t at, int32_t stack);
  void enter(int32_t loop, int32_t parent, uint32_t need, uint32_t left);
  void close(ConfigSet& out);
  int32_t intern(ConfigSet set);
  int32_t find_next(int32_t state, uint8_t byte);
  int32_t move_frame(const std::vector<Frame>& old, int32_t id, std::vector<int32_t>& moved);

  std::shared_ptr<const Program> program_;
  uint32_t horizon_;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, int32_t, FrameHash> frame_ids_;
  std::vector<int32_t> abstract_frames_;  // of each frame; kUnknown
  std::vector<State> states_;
  std::unordered_map<std::vector<Config>, int32_t, ConfigHash> state_ids_[2];  // by `ends`
  std::vector<Config> open_;
  std::unordered_map<uint64_t, bool> seen_;
  bool overflowed_ = false;
  size_t visits_left_ = SIZE_MAX;
};

}  // namespace loom::core::grammar
