// DonatePeer: the server's side of one connection: authentication, uploads, requests.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/json/json.hpp"
#include "remote/server.hpp"

namespace loom::core {

class DonatePeer final : public DonateHandler, public std::enable_shared_from_this<DonatePeer> {
 public:
  explicit DonatePeer(DonateServer& server) : server_(server), upload_(server.account_) {}
  void on_open(const std::shared_ptr<DonateConnection>& connection) override;
  void on_frame(const std::shared_ptr<DonateConnection>& connection, std::string frame) override;

 private:
  using Connection = std::shared_ptr<DonateConnection>;
  // The next step after a message.
  enum class Then : uint8_t { next, wait, finish };

  Then handle(const Connection& connection, const std::string& frame);
  Result<Then> answer(const Connection& connection, const JsonValue& message);
  Status greet(const JsonValue& message);
  Status begin(const JsonValue& message);
  Status chunk(const JsonValue& message);
  Result<Then> commit(const Connection& connection);
  void mount(const Connection& connection, const std::shared_ptr<const DonatedModel>& pushed);
  Status infer(const Connection& connection, const JsonValue& message);
  Status prompt(const Connection& connection, const JsonValue& message);
  void report_queue(const Connection& connection) const;
  Status pushing() const;

  DonateServer& server_;
  DonateUpload upload_;
  std::string challenge_;
  bool trusted_ = false;
};

}  // namespace loom::core
