// Decimals as a module writes them; tests/web/digits_node.mjs compares them. The doubles are a
// fixed sequence. Each line has the bits, a number of digits, and std::to_chars() in both formats.
// It also has the shortest form of the double and of the float next to it.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

uint64_t next(uint64_t& state) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

// Any bits; sums of few powers of two, whose digits end and are ties; and small fractions.
uint64_t drawn(uint64_t& state, int kind) {
  const uint64_t bits = next(state);
  double value = 0;
  if (kind == 0) return bits;
  if (kind == 1)
    value =
        static_cast<double>(static_cast<int64_t>(bits >> 40)) / static_cast<double>(1 << bits % 13);
  if (kind == 2) value = static_cast<double>(static_cast<int64_t>(bits)) / 1e18;
  uint64_t out;
  std::memcpy(&out, &value, 8);
  return out;
}

template <class... How>
void print(double value, How... how) {
  char text[2600];
  const auto end = std::to_chars(text, text + sizeof text, value, how...);
  std::printf(" %.*s", static_cast<int>(end.ptr - text), text);
}

}  // namespace

int main() {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 6000; ++i) {
    const uint64_t bits = drawn(state, i % 3);
    const int digits = static_cast<int>(next(state) % (i % 50 == 0 ? 1200 : 24));
    double value;
    std::memcpy(&value, &bits, 8);
    if ((bits >> 52 & 2047) == 2047) continue;
    std::printf("%016llx %d", static_cast<unsigned long long>(bits), digits);
    print(value, std::chars_format::fixed, digits);
    print(value, std::chars_format::scientific, digits);
    print(value, std::chars_format::fixed);
    print(static_cast<float>(value));
    std::printf("\n");
  }
}
