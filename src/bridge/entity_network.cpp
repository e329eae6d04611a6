#include "bridge/entity_network.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "bridge/network_json.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kSections[] = {"network",  "model", "language_model",
                                          "training", "proof", "columns"};
constexpr std::string_view kFolders[] = {"input/", "text/", "state/", "proof/"};

bool is_param_path(std::string_view path) {
  return !path.empty() && path.front() == '(';
}

}  // namespace

void add_network(const NetworkSpec& spec, const Network& network, JsonValue& header,
                 std::vector<EntityOutput>& blobs) {
  header.add("network", network_json(spec));
  for (size_t i = 0; i < network.params().size(); ++i) {
    const Param& p = network.params()[i];
    blobs.push_back(tensor_output(p.path, p.tensor));
    // A damaged mapped parameter must not get a new hash that matches the damage.
    blobs.back().data = [&network, i,
                         bytes =
                             std::move(blobs.back().data)]() -> Result<std::span<const std::byte>> {
      LOOM_TRY(network.check_param(static_cast<int>(i)));
      return bytes();
    };
  }
}

Status save_network(const std::string& path, const NetworkSpec& spec, const Network& network) {
  LOOM_TRY(network.check_loaded());
  JsonValue header = JsonValue::object();
  std::vector<EntityOutput> blobs;
  add_network(spec, network, header, blobs);
  return write_entity(path, header, blobs);
}

Status check_sections(const Entity& file) {
  for (const auto& [key, value] : file.header().members()) {
    if (std::find(std::begin(kSections), std::end(kSections), key) == std::end(kSections))
      return bad_file(
          cat("unknown section '", printable(key), "'; was it written by a newer release?"),
          file.where());
  }
  for (const EntityBlob& blob : file.blobs()) {
    const bool known = is_param_path(blob.path) ||
                       std::any_of(std::begin(kFolders), std::end(kFolders),
                                   [&](auto folder) { return blob.path.starts_with(folder); });
    if (!known)
      return bad_file(cat("unknown blob '", printable(blob.path), "'"), file.where(),
                      static_cast<int64_t>(blob.offset));
  }
  return {};
}

Result<std::shared_ptr<const Entity>> open_entity(const FileRef& path) {
  LOOM_ASSIGN(std::unique_ptr<Entity> file, Entity::open(path));
  LOOM_TRY(check_sections(*file));
  return std::shared_ptr<const Entity>(std::move(file));
}

Result<NetworkSpec> entity_spec(const Entity& file) {
  const JsonValue* json = file.header().find("network");
  if (json == nullptr) return bad_file("has no section 'network'", file.where());
  Result<NetworkSpec> spec = read_network(*json, file.where());
  if (spec.ok() || spec.error().offset < 0) return spec;
  Error error = spec.error();
  error.offset += static_cast<int64_t>(kEntityFixed);  // positions count from the header
  return error;
}

Status map_params(const std::shared_ptr<const Entity>& file, Network& network,
                  bool allow_nonfinite) {
  std::vector<size_t> blob_of;
  for (size_t i = 0; i < network.params().size(); ++i) {
    const std::string& path = network.params()[i].path;
    const int64_t blob = file->find(path);
    if (blob < 0) return bad_file(cat("has no blob ", path), file->where());
    blob_of.push_back(static_cast<size_t>(blob));
    const EntityBlob& found = file->blobs()[blob_of.back()];
    const bool text = found.layout == BlobLayout::text;
    Status mapped = text ? Status(bad_file(cat(path, " is a text")))
                         : network.map_param(static_cast<int>(i), file->tensor(blob_of.back()));
    if (!mapped.ok())
      return bad_file(mapped.error().message, file->where(), static_cast<int64_t>(found.offset));
  }
  size_t params = 0;
  for (const EntityBlob& blob : file->blobs()) params += is_param_path(blob.path) ? 1 : 0;
  if (params != network.params().size()) {
    return bad_file(cat("has ", params, " parameters, its network ", network.params().size()),
                    file->where());
  }
  std::vector<bool> buffers;
  for (const Param& param : network.params()) buffers.push_back(!param.spec.trained);
  network.adopt(file,
                [file = file.get(), blob_of = std::move(blob_of), allow_nonfinite,
                 buffers = std::move(buffers)](int index) -> Status {
                  const size_t i = static_cast<size_t>(index), blob = blob_of[i];
                  LOOM_TRY(file->verify(blob));
                  if (allow_nonfinite) return {};
                  return check_finite(file->tensor(blob), buffers[i], file->blobs()[blob].path,
                                      file->where());
                });
  return {};
}

Result<SourceWeight> entity_weight(const Entity& file, const Param& param) {
  const int64_t found = file.find(param.path);
  if (found < 0) return bad_file(cat("has no blob ", param.path), file.where());
  const auto index = static_cast<size_t>(found);
  const EntityBlob& blob = file.blobs()[index];
  const bool layout = (blob.layout == BlobLayout::r16) == param.spec.matrix();
  if (blob.layout == BlobLayout::text || !layout || !(blob.shape == param.spec.shape)) {
    return bad_file(
        cat(param.path, " is ", blob.shape.str(), ", the network wants ", param.spec.shape.str()),
        file.where(), static_cast<int64_t>(blob.offset));
  }
  LOOM_TRY(file.verify(index));
  SourceWeight weight;
  weight.stored = blob.dtype;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [&file, index, cols](int64_t first, int64_t count, float* out) {
    return file.to_f32(index, first * cols, count * cols, out);
  };
  if (param.spec.matrix()) {
    weight.copy_row = [source = file.tensor(index)](int64_t row, const R16& matrix, std::byte* to) {
      r16_copy_row(matrix, source.data, row, to);
      return Status();
    };
  }
  weight.release = [&file, index] { file.release(index); };
  return weight;
}

Result<MappedNetwork> map_network(const std::shared_ptr<const Entity>& file, int64_t batch,
                                  bool allow_nonfinite) {
  LOOM_ASSIGN(NetworkSpec spec, entity_spec(*file));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(batch)));
  LOOM_TRY(map_params(file, network, allow_nonfinite));
  return MappedNetwork{std::move(spec), std::move(network)};
}

}  // namespace loom::core
