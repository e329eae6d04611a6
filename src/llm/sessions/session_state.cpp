// File format of a session's state: the tokens that it has read, their keys and values, and the
// logits after the last one. All numbers are little-endian.
//
//   8 bytes  "LOOMKV", 0, version 1
//   32       fingerprint, 32 hex digits: weights, network, number types, numerics contract
//   8        P, tokens read;  8: V, logits (0 or the vocabulary)
//   4 P      tokens;  4 V: logits, f32
//   ...      per layer with a cache: keys, then values. Each has, for all heads and then for all P
//            positions, D numbers as in the cache (4-bit numbers two in a byte), then their steps
//            (KvCache)
//   ...      if the network has recurrent states: 8 bytes, the number of tokens that these have
//   read
//            (at most P), then the states of all layers, f32
//   32       XXH3-128 of everything before, hex digits
//
// The size follows from P, V and the network, and is checked before anything is read. Positions
// that were read and dropped are not in the file.
#include <bit>
#include <cstring>

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "grid/adapters/merge.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/bytes/hash.hpp"
#include "io/files/file.hpp"
#include "llm/sessions/llm_session.hpp"
#include "loom/version.hpp"
#include "ops/recording/pages.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

constexpr char kStateMagic[8] = {'L', 'O', 'O', 'M', 'K', 'V', 0, 1};
constexpr int64_t kStateHeader = 8 + 32 + 8 + 8, kStateHash = 32;
constexpr size_t kStateBuffer = size_t{1} << 20;

// A fingerprint of everything that keys and values depend on.
Result<std::string> state_fingerprint(const StateTarget& of) {
  LOOM_ASSIGN(GridSpec grid, decoder_grid(of.model->config()));
  BytesHash hash;
  const auto add = [&](std::string_view text) { hash.add(std::as_bytes(std::span(text))); };
  add(kNumericsContract);
  add(write_network({std::move(grid), Shape{1}}));
  add(dtype_name(of.cache));
  add(of.activations == ActivationMode::q8 ? "q8" : "f32");
  if (of.device) add("device");
  for (const Param& param : of.model->network().params()) {
    add(dtype_name(param.tensor.dtype));
    hash.add({param.tensor.data, static_cast<size_t>(param.bytes())});
  }
  const std::vector<double> scales = adapter_scales(of.model->network());
  hash.add(std::as_bytes(std::span(scales)));
  return hash.hex();
}

// Bytes of one position of a head, steps included.
int64_t position_bytes(const KvCache& cache) {
  const int block = dtype_info(cache.dtype).block;
  return plain_bytes(cache.dtype, Shape{cache.head_dim}) +
         (block > 0 ? cache.head_dim / block * 2 : 0);
}

// Calls f(address, bytes) for the numbers and steps of the first positions, in file order.
template <class F>
void each_stretch(const KvCache& cache, const int32_t* pages, bool keys, int64_t positions, F&& f) {
  std::byte* side = keys ? cache.keys : cache.values;
  const DTypeInfo& info = dtype_info(cache.dtype);
  // Numbers of 4 bits are copied as bytes of two.
  const int64_t unit = info.bits < 8 ? 1 : info.bits / 8;
  const int64_t d = cache.head_dim * info.bits / 8 / unit;
  const int64_t steps = info.block > 0 ? cache.head_dim / info.block : 0;
  std::byte* behind = side + plain_bytes(cache.dtype, Shape{cache.sequence_numbers()});
  for (int64_t head = 0; head < cache.kv_heads; ++head) {
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t group = head * (cache.capacity / 16) + page_of(pages, p / 16), lane = p % 16;
      const int64_t row = group * 16 + lane;
      if (!keys) {
        f(side + row * d * unit, d * unit);
        f(behind + row * steps * 2, steps * 2);
        continue;
      }
      for (int64_t i = 0; i < d; ++i) f(side + ((group * d + i) * 16 + lane) * unit, unit);
      for (int64_t i = 0; i < steps; ++i) f(behind + ((group * steps + i) * 16 + lane) * 2, 2);
    }
  }
}

const int32_t* table(const StateTarget& of) {
  return of.pages.empty() ? nullptr : of.pages.data();
}

int64_t cache_bytes(const std::vector<KvCache>& caches, int64_t positions) {
  int64_t bytes = 0;
  for (const KvCache& cache : caches)
    bytes += 2 * cache.kv_heads * positions * position_bytes(cache);
  return bytes;
}

// Buffers small pieces and hashes what it writes.
class StateWriter {
 public:
  explicit StateWriter(AtomicFile& file) : file_(file) { buffer_.reserve(kStateBuffer); }
  void add(const void* data, int64_t bytes) {
    const auto* from = static_cast<const std::byte*>(data);
    buffer_.insert(buffer_.end(), from, from + bytes);
    if (buffer_.size() >= kStateBuffer) send();
  }
  template <class T>
  void number(T value) {
    std::byte bytes[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
    add(bytes, sizeof(T));
  }
  Status finish() {
    send();
    LOOM_TRY(status_);
    return file_.write(hash_.hex());
  }

 private:
  void send() {
    hash_.add(buffer_);
    if (status_.ok()) status_ = file_.write(buffer_);
    buffer_.clear();
  }
  AtomicFile& file_;
  std::vector<std::byte> buffer_;
  BytesHash hash_;
  Status status_;
};

// Only ragged sessions have recurrent states that belong to one sequence.
Status check_states(const StateTarget& of) {
  if (!of.states.empty()) return {};
  for (const StateSpec& s : of.model->network().states()) {
    if (s.width > 0)
      return unsupported("the state of recurrent layers is not part of such a file",
                         of.model->source());
  }
  return {};
}

int64_t row_bytes(const Tensor& t) {
  return plain_bytes(t.dtype, t.shape);
}

int64_t states_bytes(const StateTarget& of) {
  int64_t bytes = of.states.empty() ? 0 : 8;
  for (const Tensor& t : of.states) bytes += row_bytes(t);
  return bytes;
}

struct StateCounts {
  int64_t tokens, logits;
};

// Counts are checked against the session and the file size before any state changes.
Result<StateCounts> read_header(ByteReader& in, uint64_t size, const StateTarget& to) {
  const DecoderConfig& config = to.model->config();
  LOOM_ASSIGN(const auto magic, in.take(sizeof(kStateMagic), "the name of the format"));
  if (std::memcmp(magic.data(), kStateMagic, sizeof(kStateMagic)) != 0)
    return in.error("this is not a session state, or it is one of another version");
  LOOM_ASSIGN(const std::string requested, state_fingerprint(to));
  LOOM_ASSIGN(const auto found, in.take(requested.size(), "the fingerprint"));
  if (std::memcmp(found.data(), requested.data(), requested.size()) != 0) {
    return in.error(
        "this is the state of another model, or of other types of weights, activations "
        "or keys and values");
  }
  LOOM_ASSIGN(const uint64_t tokens, in.u64("the number of tokens"));
  LOOM_ASSIGN(const uint64_t logits, in.u64("the number of logits"));
  if (logits != 0 && logits != static_cast<uint64_t>(config.vocab_size))
    return in.error(cat(logits, " logits; the vocabulary has ", config.vocab_size));
  if (tokens > static_cast<uint64_t>(config.max_positions))
    return in.error(cat(tokens, " tokens; the model has ", config.max_positions, " positions"));
  const auto positions = static_cast<int64_t>(tokens);
  const int64_t whole = kStateHeader + 4 * (positions + static_cast<int64_t>(logits)) +
                        cache_bytes(to.caches, positions) + states_bytes(to) + kStateHash;
  if (static_cast<uint64_t>(whole) != size)
    return in.error(cat("the file has ", size, " bytes; ", tokens, " tokens need ", whole));
  LOOM_TRY(check_room(0, positions, to.context));
  return StateCounts{positions, static_cast<int64_t>(logits)};
}

}  // namespace

Status write_state(const FileRef& path, const StateTarget& from, std::span<const TokenId> fed,
                   std::span<const float> logits) {
  LOOM_TRY(check_states(from));
  LOOM_ASSIGN(const std::string fingerprint, state_fingerprint(from));
  LOOM_ASSIGN(AtomicFile file, AtomicFile::create(path));
  StateWriter out(file);
  out.add(kStateMagic, sizeof(kStateMagic));
  out.add(fingerprint.data(), static_cast<int64_t>(fingerprint.size()));
  out.number(static_cast<uint64_t>(fed.size()));
  out.number(static_cast<uint64_t>(logits.size()));
  for (const TokenId id : fed) out.number(static_cast<uint32_t>(id));
  for (const float logit : logits) out.number(std::bit_cast<uint32_t>(logit));
  for (const KvCache& cache : from.caches) {
    for (const bool keys : {true, false}) {
      each_stretch(cache, table(from), keys, static_cast<int64_t>(fed.size()),
                   [&](const std::byte* at, int64_t bytes) { out.add(at, bytes); });
    }
  }
  if (!from.states.empty()) out.number(static_cast<uint64_t>(from.state_position));
  for (const Tensor& t : from.states) out.add(t.data, row_bytes(t));
  LOOM_TRY(out.finish());
  return file.commit();
}

Result<StateFile> read_state(const FileRef& path, const StateTarget& to) {
  LOOM_TRY(check_states(to));
  LOOM_ASSIGN(MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  ByteReader in(bytes, path.name());
  LOOM_ASSIGN(const StateCounts counts, read_header(in, bytes.size(), to));
  const size_t hashed = bytes.size() - kStateHash;
  if (std::memcmp(hash_hex(bytes.first(hashed)).data(), bytes.data() + hashed, kStateHash) != 0)
    return in.error("its checksum does not fit; the file is damaged");
  StateFile out;
  LOOM_ASSIGN(const auto ids, in.take(static_cast<uint64_t>(4 * counts.tokens), "the tokens"));
  out.fed.resize(static_cast<size_t>(counts.tokens));
  for (size_t i = 0; i < out.fed.size(); ++i) out.fed[i] = load_le<int32_t>(ids.data() + 4 * i);
  LOOM_TRY(check_tokens(*to.model, out.fed));
  LOOM_ASSIGN(const auto values, in.take(static_cast<uint64_t>(4 * counts.logits), "the logits"));
  out.logits.resize(static_cast<size_t>(counts.logits));
  for (size_t i = 0; i < out.logits.size(); ++i)
    out.logits[i] = load_le<float>(values.data() + 4 * i);
  out.caches_at = in.offset();
  if (!to.states.empty()) {
    const auto at = out.caches_at + static_cast<uint64_t>(cache_bytes(to.caches, counts.tokens));
    const auto read = load_le<uint64_t>(bytes.data() + at);
    if (read > static_cast<uint64_t>(counts.tokens))
      return in.error(
          cat("its recurrent states have read ", read, " of ", counts.tokens, " tokens"));
    out.state_position = static_cast<int64_t>(read);
  }
  out.file = std::move(file);
  return out;
}

void restore_caches(const StateFile& file, const StateTarget& to) {
  const std::byte* from = file.file.bytes().data() + file.caches_at;
  for (const KvCache& cache : to.caches) {
    for (const bool keys : {true, false}) {
      each_stretch(cache, table(to), keys, static_cast<int64_t>(file.fed.size()),
                   [&](std::byte* at, int64_t count) {
                     std::memcpy(at, from, static_cast<size_t>(count));
                     from += count;
                   });
    }
  }
  if (!to.states.empty()) from += 8;
  for (const Tensor& t : to.states) {
    std::memcpy(t.data, from, static_cast<size_t>(row_bytes(t)));
    from += row_bytes(t);
  }
}

Status LlmSession::check_state() const {
  if (session_.recorder().ops().device == nullptr) return {};
  return unsupported("keys and values of this session are on the GPU; save one of the CPU");
}

StateTarget LlmSession::target() const {
  StateTarget of{model_, options_.cache, options_.activations, options_.context, session_.caches()};
  if (!session_.ragged()) return of;
  of.states = session_.states_of(0);
  of.state_position = progress_.position(0);
  return of;
}

Status LlmSession::save_state(const FileRef& path) const {
  LOOM_TRY(check_state());
  return write_state(path, target(), fed_, logits_);
}

Status LlmSession::load_state(const FileRef& path) {
  LOOM_TRY(check_state());
  LOOM_ASSIGN(StateFile file, read_state(path, target()));
  // From here on nothing fails.
  restore_caches(file, target());
  loaded_ = std::move(file.logits);
  logits_ = loaded_;
  session_.reset();
  session_.advance(static_cast<int64_t>(file.fed.size()));
  progress_.set(0, file.state_position);
  fed_.assign(file.fed.begin(), file.fed.end());
  return {};
}

}  // namespace loom::core
