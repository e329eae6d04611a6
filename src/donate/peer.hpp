// DonatePeer: the server's side of one connection: who it is, what it pushes, what it asks.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "donate/server.hpp"
#include "io/json.hpp"

namespace loom::core {

class DonatePeer final : public DonateEars, public std::enable_shared_from_this<DonatePeer> {
 public:
  explicit DonatePeer(DonateServer& server) : server_(server), upload_(server.account_) {}
  void opened(const std::shared_ptr<DonateLine>& line) override;
  void heard(const std::shared_ptr<DonateLine>& line, std::string frame) override;

 private:
  using Line = std::shared_ptr<DonateLine>;
  // What is to be done after a message was handled.
  enum class Then : uint8_t { next, wait, finish };

  Then handle(const Line& line, const std::string& frame);
  Result<Then> answer(const Line& line, const JsonValue& message);
  Status greet(const JsonValue& message);
  Status begin(const JsonValue& message);
  Status chunk(const JsonValue& message);
  Result<Then> commit(const Line& line);
  void mount(const Line& line, const std::shared_ptr<const DonatedModel>& pushed);
  Status infer(const Line& line, const JsonValue& message);
  Status prompt(const Line& line, const JsonValue& message);
  void tell_queue(const Line& line) const;
  Status pushing() const;

  DonateServer& server_;
  DonateUpload upload_;
  std::string challenge_;
  bool trusted_ = false;
};

}  // namespace loom::core
