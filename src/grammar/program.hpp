// Program: a grammar compiled for reading one byte at a time: a pushdown automaton whose frames are
// places to return to and counters of repetitions. A repetition has one body, however often it may
// come. Immutable; any number of texts may be held to it at the same time.
//
// Compiling refuses what could not be bounded while writing: rules that begin with themselves, that
// never end, and long repetitions of what may be empty.
#pragma once

#include <array>
#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "grammar/builder.hpp"

namespace loom::core::grammar {

enum class Op : uint8_t {
  byte,   // reads a byte of sets[a], goes on at b
  split,  // goes on at all of targets[a .. b)
  call,   // the rule at a; returns to b, or with b < 0 to whoever called
  ret,    // back to the frame on top, or the end of the text
  loop,   // enters a repetition: body a, exit b, least to most times
  again   // the end of a body: the frame on top counts
};

struct Instr {
  Op op = Op::ret;
  int32_t a = 0, b = 0;
  uint32_t least = 0, most = 0;
};

using ByteSet = std::bitset<256>;

class Program {
 public:
  // Errors: invalid_argument, in one line with the name of the rule.
  static Result<std::shared_ptr<const Program>> compile(const Builder& builder, ExprId root);

  const std::vector<Instr>& code() const { return code_; }
  const std::vector<int32_t>& targets() const { return targets_; }
  const std::vector<ByteSet>& sets() const { return sets_; }
  int32_t start() const { return start_; }

 private:
  friend class Compiler;
  std::vector<Instr> code_;
  std::vector<int32_t> targets_;
  std::vector<ByteSet> sets_;
  int32_t start_ = 0;
};

}  // namespace loom::core::grammar
