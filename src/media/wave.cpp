#include "media/wave.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"
#include "media/fourier.hpp"

namespace loom::core {
namespace {

constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xfffe;

// The content of the chunk "fmt ".
struct WaveForm {
  uint16_t kind = 0, channels = 0, bits = 0, frame_bytes = 0;
  uint32_t rate = 0;
};

Result<WaveForm> read_form(std::span<const std::byte> chunk, const std::string& where) {
  ByteReader reader(chunk, where);
  WaveForm form;
  LOOM_ASSIGN(form.kind, reader.u16("form of samples"));
  LOOM_ASSIGN(form.channels, reader.u16("channels"));
  LOOM_ASSIGN(form.rate, reader.u32("rate"));
  LOOM_TRY(reader.skip(4, "bytes per second"));
  LOOM_ASSIGN(form.frame_bytes, reader.u16("bytes per frame"));
  LOOM_ASSIGN(form.bits, reader.u16("bits per sample"));
  if (form.kind == kExtensible) {
    LOOM_TRY(reader.skip(8, "extension"));
    LOOM_ASSIGN(form.kind, reader.u16("form of samples"));
  }
  const bool whole = form.kind == kPcm && form.bits >= 8 && form.bits <= 32 && form.bits % 8 == 0;
  const bool real = form.kind == kFloat && (form.bits == 32 || form.bits == 64);
  if (!whole && !real)
    return unsupported(cat("samples of form ", form.kind, " with ", form.bits,
                           " bits; PCM of 8, 16, 24 or 32 bits, or floats, can be read"),
                       where);
  if (form.channels == 0 || form.rate == 0 || form.rate > 1U << 24 ||
      form.frame_bytes != form.channels * (form.bits / 8))
    return bad_file(cat("damaged WAV: ", form.channels, " channels of ", form.bits, " bits, ",
                        form.rate, " per second, frames of ", form.frame_bytes, " bytes"),
                    where);
  return form;
}

// An integer sample, little-endian; 8-bit samples are unsigned with zero at 128.
double whole_sample(const std::byte* from, int bits) {
  if (bits == 8) return (static_cast<int>(*from) - 128) / 128.0;
  uint32_t value = 0;
  for (int i = 0; i < bits / 8; ++i) value |= static_cast<uint32_t>(from[i]) << (32 - bits + 8 * i);
  return static_cast<double>(static_cast<int32_t>(value)) / 2147483648.0;
}

double real_sample(const std::byte* from, int bits) {
  static_assert(std::endian::native == std::endian::little);
  float narrow = 0;
  double wide = 0;
  std::memcpy(bits == 32 ? static_cast<void*>(&narrow) : &wide, from,
              static_cast<size_t>(bits) / 8);
  return bits == 32 ? static_cast<double>(narrow) : wide;
}

Result<Wave> read_samples(const WaveForm& form, std::span<const std::byte> data,
                          const std::string& where, const MemoryBudget& memory) {
  const size_t frames = data.size() / form.frame_bytes;
  if (data.size() % form.frame_bytes != 0) return bad_file("the file ends within a frame", where);
  LOOM_ASSIGN(const MemoryShare share, memory.take(frames * sizeof(float), "the samples", where));
  Wave wave;
  wave.rate = form.rate;
  wave.samples.resize(frames);
  const size_t each = form.bits / 8;
  for (size_t i = 0; i < frames; ++i) {
    double sum = 0;
    for (size_t c = 0; c < form.channels; ++c) {
      const std::byte* from = data.data() + i * form.frame_bytes + c * each;
      sum += form.kind == kPcm ? whole_sample(from, form.bits) : real_sample(from, form.bits);
    }
    wave.samples[i] = static_cast<float>(sum / form.channels);
    if (wave.samples[i] - wave.samples[i] != 0.0f)
      return bad_file(cat("frame ", i, " is not finite"), where);
  }
  return wave;
}

// Programs that write to a pipe claim about 2 or 4 GiB and mean the rest of the file. An incomplete
// frame at its end is dropped.
uint64_t chunk_size(uint32_t claimed, const WaveForm& form, uint64_t rest) {
  constexpr uint32_t kOpenEnd = 0x7ffff000;
  if (claimed < kOpenEnd || claimed <= rest || form.frame_bytes == 0) return claimed;
  return rest - rest % form.frame_bytes;
}

}  // namespace

bool is_wave(std::span<const std::byte> head) {
  return head.size() >= 12 && std::memcmp(head.data(), "RIFF", 4) == 0 &&
         std::memcmp(head.data() + 8, "WAVE", 4) == 0;
}

Result<Wave> decode_wave(std::span<const std::byte> bytes, const std::string& where,
                         const MemoryBudget& memory) {
  if (!is_wave(bytes)) return bad_file("this is not a WAV file", where, 0);
  ByteReader reader(bytes, where);
  LOOM_TRY(reader.skip(12, "header"));
  WaveForm form;
  while (reader.remaining() >= 8) {
    LOOM_ASSIGN(const auto name, reader.take(4, "chunk"));
    LOOM_ASSIGN(const uint32_t claimed, reader.u32("chunk length"));
    const uint64_t size = chunk_size(claimed, form, reader.remaining());
    LOOM_ASSIGN(const auto chunk, reader.take(size, "chunk"));
    if (std::memcmp(name.data(), "fmt ", 4) == 0) {
      LOOM_ASSIGN(form, read_form(chunk, where));
    } else if (std::memcmp(name.data(), "data", 4) == 0) {
      if (form.rate == 0) return reader.error("samples without their form");
      return read_samples(form, chunk, where, memory);
    }
    if (size % 2 != 0 && reader.remaining() > 0) LOOM_TRY(reader.skip(1, "padding"));
  }
  return reader.error("the file has no samples");
}

namespace {

// The weights of samples for a value; `first` is relative to the last sample at a whole period.
struct Phase {
  int64_t first = 0;
  std::vector<double> weights;
};

// Values are at p / to of a period of `from` samples.
Phase phase_of(int64_t p, int64_t from, int64_t to) {
  constexpr double kZeros = 6, kRolloff = 0.99;
  const auto period = static_cast<double>(from);
  const double base = static_cast<double>(std::min(from, to)) * kRolloff;
  const double reach = kZeros * period / base;
  const double position = static_cast<double>(p) / static_cast<double>(to);
  Phase phase;
  phase.first = static_cast<int64_t>(std::ceil(position * period - reach));
  const auto last = static_cast<int64_t>(std::floor(position * period + reach));
  for (int64_t k = phase.first; k <= last; ++k) {
    const double t =
        std::clamp((static_cast<double>(k) / period - position) * base, -kZeros, kZeros);
    const double half = dmath::cos(t * kHalfTurn / kZeros / 2);
    const double sinc = t == 0 ? 1.0 : dmath::sin(t * kHalfTurn) / (t * kHalfTurn);
    phase.weights.push_back(sinc * half * half * base / period);
  }
  return phase;
}

}  // namespace

Wave resampled(const Wave& wave, int64_t rate) {
  if (rate == wave.rate) return wave;
  constexpr int64_t kMaxKept = 4096;  // phases; unrelated rates have millions
  const int64_t common = std::gcd(wave.rate, rate);
  const int64_t from = wave.rate / common, to = rate / common;
  std::vector<Phase> phases;
  for (int64_t p = 0; p < to && to <= kMaxKept; ++p) phases.push_back(phase_of(p, from, to));
  const auto length = static_cast<int64_t>(wave.samples.size());
  Wave out;
  out.rate = rate;
  out.samples.resize(static_cast<size_t>((length * to + from - 1) / from));
  for (int64_t i = 0; i < static_cast<int64_t>(out.samples.size()); ++i) {
    const Phase own = phases.empty() ? phase_of(i % to, from, to) : Phase();
    const Phase& phase = phases.empty() ? own : phases[static_cast<size_t>(i % to)];
    const int64_t first = i / to * from + phase.first;
    const int64_t end = std::min(static_cast<int64_t>(phase.weights.size()), length - first);
    double sum = 0;
    for (int64_t k = std::max<int64_t>(-first, 0); k < end; ++k)
      sum += phase.weights[static_cast<size_t>(k)] *
             static_cast<double>(wave.samples[static_cast<size_t>(first + k)]);
    out.samples[static_cast<size_t>(i)] = static_cast<float>(sum);
  }
  return out;
}

}  // namespace loom::core
