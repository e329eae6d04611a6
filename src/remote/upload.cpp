#include "remote/upload.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/memory_budget.hpp"
#include "base/text.hpp"
#include "io/bytes/base64.hpp"

namespace loom::core {
namespace {

constexpr std::align_val_t kDonateAlignment{64};

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

void DonateBytes::Free::operator()(std::byte* bytes) const {
  ::operator delete(bytes, kDonateAlignment);
}

Status DonateBytes::add(std::string_view bytes, uint64_t end) {
  const size_t needed = size_ + bytes.size();
  if (needed > room_) {
    const size_t room = std::max<size_t>(needed, std::min<uint64_t>(end, uint64_t{2} * room_));
    void* const memory = ::operator new(room, kDonateAlignment, std::nothrow);
    if (memory == nullptr)
      return make_error(Code::out_of_memory, cat("no ", size_text(room), " for a pushed model"));
    std::unique_ptr<std::byte, Free> larger(static_cast<std::byte*>(memory));
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    room_ = room;
  }
  if (!bytes.empty()) std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ = needed;
  return {};
}

bool DonateAccount::take(uint64_t bytes) {
  uint64_t held = held_.load();
  do {
    if (bytes > most_ - std::min(held, most_)) return false;
  } while (!held_.compare_exchange_weak(held, held + bytes));
  return true;
}

void DonateUpload::forget() {
  account_->give_back(std::exchange(booked_, 0));
  model_.reset();
  digest_.reset();
}

Status DonateUpload::begin(std::string config, int64_t length, std::string sha256) {
  forget();
  if (config.empty()) return invalid("config_json is empty");
  if (length < 1 || static_cast<uint64_t>(length) > account_->most()) {
    return invalid(cat("bad weights_len: ", length, "; it may be from 1 to ", account_->most()));
  }
  sha256 = to_lower_ascii(sha256);
  if (!sha256.empty() && !is_sha256(sha256))
    return invalid("weights_sha256 must be 64 hexadecimal digits");
  model_ = std::make_shared<DonatedModel>();
  model_->config = std::move(config);
  digest_.emplace();
  sha256_ = std::move(sha256);
  length_ = length;
  next_ = 0;
  last_ = false;
  return {};
}

Status DonateUpload::chunk(int64_t index, bool last, std::string_view base64) {
  const Status added = add_chunk(index, last, base64);
  if (!added.ok()) forget();
  return added;
}

Status DonateUpload::add_chunk(int64_t index, bool last, std::string_view base64) {
  if (model_ == nullptr) return invalid("weights_chunk without a model_begin before it");
  if (last_) return invalid("weights_chunk after the last one");
  if (index != next_) return invalid(cat("chunk ", index, " came where ", next_, " is the next"));
  const Result<std::string> bytes = decode_base64(base64);
  if (!bytes.ok()) return invalid(cat("bad base64 in data_b64: ", bytes.error().message));
  const uint64_t left = static_cast<uint64_t>(length_) - model_->bytes.size();
  if (bytes->size() > left)
    return invalid(
        cat("chunk ", index, " holds ", bytes->size(), " bytes; ", left, " are missing"));
  if (!account_->take(bytes->size())) {
    return make_error(Code::out_of_memory,
                      cat("models on their way hold ", size_text(account_->most()),
                          " together; try again later"));
  }
  booked_ += bytes->size();
  LOOM_TRY(model_->bytes.add(*bytes, static_cast<uint64_t>(length_)));
  digest_->add(*bytes);
  ++next_;
  last_ = last;
  return {};
}

Result<std::shared_ptr<const DonatedModel>> DonateUpload::commit() {
  if (model_ == nullptr) return invalid("model_commit without a model_begin before it");
  const std::shared_ptr<const DonatedModel> model = model_;
  const std::string expected = sha256_;
  const auto length = static_cast<uint64_t>(length_);
  const Result<std::string> hash = digest_->finish();
  forget();
  if (model->bytes.size() != length)
    return invalid(cat(model->bytes.size(), " of ", length, " bytes arrived"));
  LOOM_TRY(hash);
  if (!expected.empty() && *hash != expected)
    return invalid(cat("wrong checksum: SHA-256 is ", *hash, ", announced was ", expected));
  return model;
}

}  // namespace loom::core
