// Decimals of a fixed number of digits, as std::to_chars() writes them, by printf of musl, which computes them exactly and
// is in every module. These functions take the place of those of libc++, whose tables of powers of ten are 104 KB that hardly
// compress (docs/decisions/0054-small-modules.md).
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

// A double has at most 309 digits before the point and 1074 after it; further digits are zeros.
constexpr int kMaxDigits = 1074;

std::to_chars_result written(char* first, char* last, double value, uint32_t precision, char how) {
  char digits[1536];
  const int kept = precision < kMaxDigits ? static_cast<int>(precision) : kMaxDigits;
  const char format[] = {'%', '.', '*', how, '\0'};
  const int size = std::snprintf(digits, sizeof digits, format, kept, value);
  const char* const exponent = how == 'e' ? std::strchr(digits, 'e') : digits + size;
  const int64_t zeros = static_cast<int64_t>(precision) - kept;
  if (size < 0 || last - first < size + zeros) return {last, std::errc::value_too_large};
  const auto mantissa = static_cast<size_t>(exponent - digits);
  std::memcpy(first, digits, mantissa);
  std::memset(first + mantissa, '0', static_cast<size_t>(zeros));
  std::memcpy(first + mantissa + zeros, exponent, static_cast<size_t>(size) - mantissa);
  return {first + size + zeros, std::errc()};
}

}  // namespace

_LIBCPP_BEGIN_NAMESPACE_STD

to_chars_result __d2fixed_buffered_n(char* first, char* last, double value, uint32_t precision) {
  return written(first, last, value, precision, 'f');
}
to_chars_result __d2exp_buffered_n(char* first, char* last, double value, uint32_t precision) {
  return written(first, last, value, precision, 'e');
}
// Whole numbers of so many digits, which the shortest decimals of floats are made of.
void __append_n_digits(uint32_t count, uint32_t digits, char* to) {
  for (uint32_t i = count; i > 0; --i, digits /= 10) to[i - 1] = static_cast<char>('0' + digits % 10);
}
void __append_nine_digits(uint32_t digits, char* to) {
  __append_n_digits(9, digits, to);
}

_LIBCPP_END_NAMESPACE_STD
