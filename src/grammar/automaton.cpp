#include "grammar/automaton.hpp"

#include <algorithm>

namespace loom::core::grammar {
namespace {

constexpr uint32_t kEndless = Builder::kEndless;
constexpr int32_t kMaxDepth = 512;             // of a stack
constexpr size_t kMaxVisitsOfByte = 1u << 16;  // for one byte
constexpr size_t kMaxConfigs = 1u << 13;       // in a state
constexpr size_t kCrowdedFrames = 1u << 20, kCrowdedStates = 1u << 14;

uint64_t mixed(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

uint32_t less(uint32_t count) {
  return count == kEndless || count == 0 ? count : count - 1;
}

}  // namespace

size_t Automaton::FrameHash::operator()(const Frame& f) const {
  const uint64_t position =
      static_cast<uint64_t>(static_cast<uint32_t>(f.parent)) << 32 | static_cast<uint32_t>(f.at);
  return mixed(mixed(1, position), static_cast<uint64_t>(f.need) << 32 | f.left);
}

size_t Automaton::ConfigHash::operator()(const std::vector<Config>& v) const {
  uint64_t h = v.size();
  for (const Config& c : v)
    h = mixed(h, static_cast<uint64_t>(static_cast<uint32_t>(c.at)) << 32 |
                     static_cast<uint32_t>(c.stack));
  return h;
}

Automaton::Automaton(std::shared_ptr<const Program> program, uint32_t horizon)
    : program_(std::move(program)), horizon_(horizon) {}

int32_t Automaton::frame(Frame f) {
  f.depth = f.parent < 0 ? 1 : frames_[static_cast<size_t>(f.parent)].depth + 1;
  if (f.depth > kMaxDepth) return -1;
  const auto [found, is_new] = frame_ids_.try_emplace(f, static_cast<int32_t>(frames_.size()));
  if (is_new) {
    frames_.push_back(f);
    abstract_frames_.push_back(kUnknown);
  }
  return found->second;
}

int32_t Automaton::abstract_frame(int32_t id) {
  if (id < 0) return id;
  if (abstract_frames_[static_cast<size_t>(id)] != kUnknown)
    return abstract_frames_[static_cast<size_t>(id)];
  Frame f = frames_[static_cast<size_t>(id)];
  f.parent = abstract_frame(f.parent);
  if (f.need > horizon_) f.need = kEndless;
  if (f.left > horizon_) f.left = kEndless;
  const int32_t found = frame(f);
  abstract_frames_[static_cast<size_t>(id)] = found;
  return found;
}

void Automaton::visit(int32_t at, int32_t stack) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(at)) << 32 | static_cast<uint32_t>(stack);
  if (!seen_.try_emplace(key, true).second) return;
  if (seen_.size() > kMaxVisitsOfByte || visits_left_ == 0) {
    overflowed_ = true;
    return;
  }
  --visits_left_;
  open_.push_back({at, stack});
}

// Before another iteration of a loop: enters it again, and leaves it if the minimum is reached.
void Automaton::enter(int32_t loop, int32_t parent, uint32_t need, uint32_t left) {
  const Instr& instr = program_->code()[static_cast<size_t>(loop)];
  if (left > 0) {
    const int32_t top = frame({parent, loop, less(need), less(left), 0});
    if (top >= 0) visit(instr.a, top);
  }
  if (need == 0) visit(instr.b, parent);
}

// Follows all instructions that read no byte, from the configurations in open_.
void Automaton::close(ConfigSet& out) {
  while (!open_.empty() && !overflowed_) {
    const Config c = open_.back();
    open_.pop_back();
    const Instr& instr = program_->code()[static_cast<size_t>(c.at)];
    switch (instr.op) {
      case Op::byte: out.configs.push_back(c); break;
      case Op::split:
        for (int32_t i = instr.a; i < instr.b; ++i)
          visit(program_->targets()[static_cast<size_t>(i)], c.stack);
        break;
      case Op::call: {
        const int32_t top = instr.b < 0 ? c.stack : frame({c.stack, instr.b, 0, 0, 0});
        if (instr.b < 0 || top >= 0) visit(instr.a, top);
        break;
      }
      case Op::ret:
        if (c.stack < 0) {
          out.ends = true;
        } else {
          const Frame f = frames_[static_cast<size_t>(c.stack)];
          visit(f.at, f.parent);
        }
        break;
      case Op::loop: enter(c.at, c.stack, instr.least, instr.most); break;
      case Op::again: {
        const Frame f = frames_[static_cast<size_t>(c.stack)];
        enter(f.at, f.parent, f.need, f.left);
        break;
      }
    }
  }
  open_.clear();
  seen_.clear();
  if (out.configs.size() > kMaxConfigs) overflowed_ = true;
  std::ranges::sort(out.configs);
}

ConfigSet Automaton::start() {
  ConfigSet out;
  visit(program_->start(), -1);
  close(out);
  return out;
}

ConfigSet Automaton::step(const ConfigSet& from, uint8_t byte) {
  ConfigSet out;
  for (const Config& c : from.configs) {
    const Instr& instr = program_->code()[static_cast<size_t>(c.at)];
    if (program_->sets()[static_cast<size_t>(instr.a)][byte]) visit(instr.b, c.stack);
  }
  if (!open_.empty()) close(out);
  return out;
}

int32_t Automaton::intern(ConfigSet set) {
  auto& ids = state_ids_[set.ends ? 1 : 0];
  const auto [found, is_new] = ids.try_emplace(set.configs, static_cast<int32_t>(states_.size()));
  if (is_new) states_.push_back({std::move(set), std::vector<int32_t>(256, kUnknown)});
  return found->second;
}

int32_t Automaton::abstract(const ConfigSet& exact) {
  ConfigSet set;
  set.ends = exact.ends;
  for (const Config& c : exact.configs) set.configs.push_back({c.at, abstract_frame(c.stack)});
  std::ranges::sort(set.configs);
  set.configs.erase(std::unique(set.configs.begin(), set.configs.end()), set.configs.end());
  return intern(std::move(set));
}

int32_t Automaton::find_next(int32_t state, uint8_t byte) {
  ConfigSet set = step(states_[static_cast<size_t>(state)].set, byte);
  const bool dead = set.configs.empty() && !set.ends;
  const int32_t to = dead ? kDead : intern(std::move(set));
  states_[static_cast<size_t>(state)].to[byte] = to;
  return to;
}

bool Automaton::crowded() const {
  return frames_.size() > kCrowdedFrames || states_.size() > kCrowdedStates;
}

int32_t Automaton::move_frame(const std::vector<Frame>& old, int32_t id,
                              std::vector<int32_t>& moved) {
  if (id < 0) return id;
  int32_t& to = moved[static_cast<size_t>(id)];
  if (to != kUnknown) return to;
  Frame f = old[static_cast<size_t>(id)];
  f.parent = move_frame(old, f.parent, moved);
  return to = frame(f);
}

void Automaton::forget(ConfigSet& live) {
  const std::vector<Frame> old = std::move(frames_);
  frames_.clear();
  frame_ids_.clear();
  abstract_frames_.clear();
  states_.clear();
  for (auto& ids : state_ids_) ids.clear();
  std::vector<int32_t> moved(old.size(), kUnknown);
  for (Config& c : live.configs) c.stack = move_frame(old, c.stack, moved);
  std::ranges::sort(live.configs);
}

}  // namespace loom::core::grammar
