#include "net/unix_socket.hpp"

#include <boost/asio/local/stream_protocol.hpp>

#include <filesystem>

#include "base/text.hpp"
#include "net/acceptor.hpp"
#include "net/address.hpp"

namespace loom::core {
namespace {

// The system reports this for a socket without a listening process.
bool is_deserted(const std::string& path, NetError& failed) {
  asio::io_context io;
  asio::basic_stream_socket<asio::local::stream_protocol, NetExecutor> socket(io);
  socket.open(asio::local::stream_protocol(), failed);
  if (!failed) socket.non_blocking(true, failed);
  if (!failed) socket.connect(asio::local::stream_protocol::endpoint(path), failed);
  return failed == asio::error::connection_refused;
}

}  // namespace

Result<std::string> unix_path(std::string_view address) {
  const std::string path(address.substr(std::min(address.size(), kUnixPrefix.size())));
  constexpr size_t kMax = sizeof(asio::detail::sockaddr_un_type::sun_path) - 1;
  if (path.empty())
    return invalid("a Unix socket needs a path: unix:/run/loom.sock", std::string(address));
  if (path.size() <= kMax) return path;
  return invalid(cat("the path of a Unix socket has ", path.size(), " bytes; the system allows ",
                     kMax, "; choose a shorter one"),
                 path);
}

Status remove_stale_socket(const std::string& path) {
  std::error_code bad;
  const std::filesystem::file_status found = std::filesystem::symlink_status(path, bad);
  if (!std::filesystem::exists(found)) return {};
  if (!std::filesystem::is_socket(found))
    return make_error(Code::io_error, "a file that is not a socket is there; choose another path",
                      path);
  NetError failed;
  if (is_deserted(path, failed)) {
    if (std::filesystem::remove(path, bad)) return {};
    return make_error(Code::io_error, cat("cannot remove the old socket: ", bad.message()), path);
  }
  // A full queue of connections means that a process listens.
  if (!failed || failed == asio::error::would_block || failed == asio::error::try_again)
    return make_error(Code::io_error, "another process listens there; choose another path", path);
  return make_error(
      Code::io_error,
      cat("cannot find out who listens at this socket: ", failed.message(), "; remove it"), path);
}

}  // namespace loom::core
