// One safetensors file: its header, checked against its bytes. Sharded checkpoints are in
// safetensors_index.cpp, values in safetensors_values.cpp.
// Invariant of accepted files: the tensors, sorted by offset, tile the data exactly, without holes,
// overlaps or rest. Each has exactly the bytes of its shape and dtype. Empty tensors may be at any
// boundary.
#include "io/weights/safetensors.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/files/foreign_file.hpp"
#include "io/json/json.hpp"
#include "io/weights/torch_file.hpp"

namespace loom::core {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

std::string in_quotes(std::string_view name) {
  return cat('"', printable(name), '"');
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> parts;
  for (const int64_t dim : shape) parts.push_back(std::to_string(dim));
  return cat('[', join(parts, ", "), ']');
}

// The header of a file during parsing. JSON offsets count from the header's first byte, ours from
// the file's.
class SafeHeaderReader {
 public:
  SafeHeaderReader(std::span<const std::byte> bytes, const std::string& where, size_t file)
      : bytes_(bytes), where_(where), file_(file) {}

  Status read(std::vector<SafeTensor>& tensors, Metadata& metadata) {
    LOOM_ASSIGN(const JsonValue header, read_json());
    for (const auto& [name, value] : header.members()) {
      if (name == "__metadata__") {
        LOOM_TRY(read_metadata(value, metadata));
      } else {
        LOOM_ASSIGN(SafeTensor tensor, read_tensor(name, value));
        tensors.push_back(std::move(tensor));
      }
    }
    return {};
  }

  // The tensors of this file, sorted by offset, must tile the data.
  Status check_tiling(std::vector<const SafeTensor*> order) const {
    std::sort(order.begin(), order.end(), [](const SafeTensor* a, const SafeTensor* b) {
      if (a->file_offset != b->file_offset) return a->file_offset < b->file_offset;
      return a->data.size() < b->data.size();
    });
    uint64_t end = data_start_;
    for (const SafeTensor* tensor : order) {
      const uint64_t start = tensor->file_offset;
      if (start > end) {
        return fault(
            end, cat("a hole of ", start - end, " bytes before tensor ", in_quotes(tensor->name)));
      }
      if (start < end) {
        return fault(start, cat("tensor ", in_quotes(tensor->name),
                                " overlaps the one before it by ", end - start, " bytes"));
      }
      end = start + tensor->data.size();
    }
    if (end == bytes_.size()) return {};
    return fault(end, cat(bytes_.size() - end, " bytes after the last tensor"));
  }

 private:
  Error fault(uint64_t offset, std::string message) const {
    return bad_file(std::move(message), where_, static_cast<int64_t>(offset));
  }
  Error fault(const JsonValue& at, std::string message) const {
    return fault(8 + static_cast<uint64_t>(at.offset()), std::move(message));
  }

  Result<JsonValue> read_json() {
    ByteReader reader(bytes_, where_);
    LOOM_ASSIGN(const uint64_t length, reader.u64("the header length"));
    if (length > kMaxSafeHeader) {
      return fault(0, cat("a header of ", length, " bytes; the limit is ", kMaxSafeHeader));
    }
    LOOM_ASSIGN(const auto header, reader.take(length, "the header"));
    data_start_ = 8 + length;
    const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
    if (text.empty() || text[0] != '{') return fault(8, "the header must begin with '{'");
    JsonLimits limits;
    limits.max_bytes = kMaxSafeHeader;
    limits.max_depth = 3;
    auto json = parse_json(text, where_, limits);
    if (json.ok()) return json;
    Error error = json.error();
    if (error.offset >= 0) error.offset += 8;
    return error;
  }

  Status read_metadata(const JsonValue& value, Metadata& metadata) const {
    if (!value.is_object()) {
      return fault(value, cat("__metadata__: expected an object, found ", value.describe()));
    }
    for (const auto& [key, text] : value.members()) {
      if (!text.is_string()) {
        return fault(text, cat("__metadata__ ", in_quotes(key), ": expected a string, found ",
                               text.describe()));
      }
      metadata.emplace_back(key, text.text());
    }
    return {};
  }

  // The counts of an array field: shape, data_offsets.
  Status read_counts(const JsonValue& value, const std::string& what, size_t max,
                     std::vector<int64_t>& out) const {
    if (!value.is_array()) {
      return fault(value, cat(what, ": expected an array, found ", value.describe()));
    }
    if (value.elements().size() > max) {
      return fault(value, cat(what, ": ", value.elements().size(), " entries; the limit is ", max));
    }
    for (const JsonValue& element : value.elements()) {
      const auto count = element.as_int(what);
      if (!count.ok() || *count < 0) {
        return fault(element, cat(what, ": expected a count, found ", element.describe()));
      }
      out.push_back(*count);
    }
    return {};
  }

  Result<SafeTensor> read_tensor(const std::string& name, const JsonValue& value) const {
    const std::string what = cat("tensor ", in_quotes(name));
    if (name.size() > kMaxSafeName) {
      return fault(value,
                   cat(what, ": a name of ", name.size(), " bytes; the limit is ", kMaxSafeName));
    }
    if (!value.is_object()) {
      return fault(value, cat(what, ": expected an object, found ", value.describe()));
    }
    for (const auto& [key, field] : value.members()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        return fault(field, cat(what, ": unknown field ", in_quotes(key)));
      }
    }
    for (const char* key : {"dtype", "shape", "data_offsets"}) {
      if (value.find(key) == nullptr) return fault(value, cat(what, ": no ", key));
    }
    const JsonValue& dtype = *value.find("dtype");
    SafeTensor tensor;
    tensor.name = name;
    tensor.file = file_;
    const auto known = parse_safe_dtype(dtype.text());
    if (!known.ok()) return fault(dtype, cat(what, ": unknown dtype ", dtype.describe()));
    tensor.dtype = *known;
    LOOM_TRY(read_counts(*value.find("shape"), what + ": shape", kMaxSafeDims, tensor.shape));
    LOOM_TRY(locate(*value.find("data_offsets"), what, tensor));
    return tensor;
  }

  // data_offsets: inside the data, and of the length of shape x dtype.
  Status locate(const JsonValue& value, const std::string& what, SafeTensor& tensor) const {
    std::vector<int64_t> offsets;
    LOOM_TRY(read_counts(value, what + ": data_offsets", 2, offsets));
    if (offsets.size() != 2) return fault(value, what + ": data_offsets: expected [begin, end]");
    const auto begin = static_cast<uint64_t>(offsets[0]);
    const auto end = static_cast<uint64_t>(offsets[1]);
    const uint64_t available = bytes_.size() - data_start_;
    if (begin > end) return fault(value, cat(what, " ends at ", end, " before it begins"));
    if (end > available) {
      return fault(value, cat(what, " ends at ", end, ", the data has ", available,
                              " bytes; copy or download it again"));
    }
    // In the order of the reference library: after a dimension of 0, later dimensions do not
    // matter.
    uint64_t bits = 1;
    bool fits = true;
    for (const int64_t dim : tensor.shape) {
      fits = fits && checked_mul(bits, static_cast<uint64_t>(dim), bits);
    }
    if (!fits || !checked_mul(bits, safe_dtype_bits(tensor.dtype), bits)) {
      return fault(value,
                   cat(what, ": the size of shape ", shape_text(tensor.shape), " overflows"));
    }
    const std::string kind =
        cat("shape ", shape_text(tensor.shape), " of ", safe_dtype_name(tensor.dtype));
    if (bits % 8 != 0) return fault(value, cat(what, ": ", kind, " is not a multiple of a byte"));
    if (bits / 8 != end - begin) {
      return fault(value, cat(what, ": ", kind, " takes ", bits / 8, " bytes, data_offsets give ",
                              end - begin));
    }
    tensor.file_offset = data_start_ + begin;
    tensor.data = bytes_.subspan(tensor.file_offset, end - begin);
    return {};
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t file_;
  uint64_t data_start_ = 0;
};

}  // namespace

int64_t SafeTensor::count() const {
  uint64_t product = 1;
  for (const int64_t dim : shape) product *= static_cast<uint64_t>(dim);
  return static_cast<int64_t>(product);
}

Status SafeTensors::add_file(std::span<const std::byte> bytes, const std::string& where,
                             size_t file) {
  if (is_torch_file(bytes)) {
    LOOM_ASSIGN(std::vector<SafeTensor> tensors, read_torch_file(bytes, where, file));
    std::ranges::move(tensors, std::back_inserter(tensors_));
    return {};
  }
  SafeHeaderReader reader(bytes, where, file);
  const size_t first = tensors_.size();
  const Status header = reader.read(tensors_, metadata_);
  if (!header.ok()) {
    const auto foreign = foreign_file(bytes, where);
    return foreign ? *foreign : header.error();
  }
  std::vector<const SafeTensor*> order;
  for (size_t i = first; i < tensors_.size(); ++i) order.push_back(&tensors_[i]);
  LOOM_TRY(reader.check_tiling(std::move(order)));
  return {};
}

void SafeTensors::sort_by_name() {
  std::sort(tensors_.begin(), tensors_.end(),
            [](const SafeTensor& a, const SafeTensor& b) { return a.name < b.name; });
}

Result<SafeTensors> SafeTensors::parse(std::span<const std::byte> bytes, const std::string& where) {
  SafeTensors file;
  LOOM_TRY(file.add_file(bytes, where, 0));
  file.sort_by_name();
  return file;
}

const SafeTensor* SafeTensors::find(std::string_view name) const {
  const auto at =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const SafeTensor& t, std::string_view key) { return t.name < key; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

void SafeTensors::release(const SafeTensor& tensor) const {
  if (tensor.file < files_.size()) {
    files_[tensor.file].release(tensor.file_offset, tensor.data.size());
  }
}

}  // namespace loom::core
