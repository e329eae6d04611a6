// Program: a grammar compiled for reading one byte at a time. It is a pushdown automaton whose
// frames are return addresses and counters of repetitions. A repetition has one body, for any
// count. Immutable; any number of texts may use it at the same time.
//
// Compiling rejects rules that cannot be bounded: rules that begin with themselves, rules that
// never end, and long repetitions of a possibly empty body.
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
  byte,   // reads a byte of sets[a], continues at b
  split,  // continues at all of targets[a .. b)
  call,   // calls the rule at a; returns to b, or to the caller if b < 0
  ret,    // returns to the top frame, or ends the text
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
