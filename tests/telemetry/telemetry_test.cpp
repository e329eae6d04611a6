// The output of telemetry, read back by readers of its own; and queues over sinks that are slow,
// that fail and that never return.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "base/waits.hpp"
#include "io/bytes/protobuf.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "telemetry/crc32c.hpp"
#include "telemetry/hanging.hpp"
#include "telemetry/queue.hpp"

namespace loom::core {
namespace {

namespace fs = std::filesystem;
using test::Gate;
using test::Hanging;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A folder of this test, empty.
std::string fresh_folder(const std::string& name) {
  const fs::path path =
      fs::path(testing::TempDir()) / cat("loom_telemetry_", ::getpid(), "_", name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path.string();
}

Record scalar(std::string tag, int64_t step, double value) {
  Record r;
  r.tag = std::move(tag);
  r.step = step;
  r.wall = 1000.5 + static_cast<double>(step);
  r.value = value;
  return r;
}

// ---- Checksums ----------------------------------------------------------------------------------

TEST(Crc32c, HasTheValuesOfItsDefinition) {
  // RFC 3720, appendix B.4, and the check value of the catalogue of CRCs.
  EXPECT_EQ(crc32c(bytes_of_text("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c(bytes_of_text(std::string(32, '\0'))), 0x8A9136AAU);
  EXPECT_EQ(crc32c(bytes_of_text(std::string(32, '\xff'))), 0x62A8AB43U);
  EXPECT_EQ(crc32c({}), 0U);
}

// ---- Histograms ---------------------------------------------------------------------------------

TEST(Histograms, CountEveryValueOnce) {
  const Rng numbers(7, 0);
  uint64_t at = 0;
  const auto next = [&] { return numbers.bits(at++); };
  for (int round = 0; round < 300; ++round) {
    std::vector<float> values;
    const auto count = static_cast<int>(next() % 200);
    int64_t finite = 0;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      float v = static_cast<float>(static_cast<int64_t>(next() % 2001) - 1000) / 64;
      if (next() % 20 == 0) v = std::nanf("");
      if (next() % 20 == 0) v = INFINITY;
      if (round % 7 == 0 && std::isfinite(v)) v = 3.25f;  // all alike
      values.push_back(v);
      if (!std::isfinite(v)) continue;
      ++finite;
      sum += static_cast<double>(v);
    }
    const int bins = 1 + static_cast<int>(next() % 40);
    const Histogram h = make_histogram(values, bins);
    EXPECT_EQ(h.count, finite);
    EXPECT_EQ(h.not_finite, count - finite);
    EXPECT_EQ(h.sum, sum);
    ASSERT_EQ(h.limits.size(), h.counts.size());
    if (finite == 0) {
      EXPECT_TRUE(h.limits.empty());
      continue;
    }
    EXPECT_EQ(h.limits.back(), h.max);
    // Each range counted by its definition.
    for (size_t b = 0; b < h.limits.size(); ++b) {
      int64_t expected = 0;
      for (const float v : values) {
        const double x = static_cast<double>(v);
        if (std::isfinite(v) && x <= h.limits[b] && (b == 0 || x > h.limits[b - 1])) ++expected;
      }
      EXPECT_EQ(h.counts[b], expected) << "bin " << b;
    }
  }
}

TEST(Histograms, OfValuesThatDoublesHardlyTellApartHaveOneRange) {
  const std::vector<float> values = {5, 5, 5};
  const Histogram h = make_histogram(values);
  EXPECT_EQ(h.limits, std::vector<double>{5});
  EXPECT_EQ(h.counts, std::vector<int64_t>{3});
}

// ---- Files of TensorBoard -----------------------------------------------------------------------

uint64_t little(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

// The events of a file; checks lengths and both checksums of each.
std::vector<std::string> events_of(const std::string& file) {
  std::vector<std::string> events;
  const auto checked = [&](size_t at, size_t size) {
    const uint32_t crc = crc32c(bytes_of_text(std::string_view(file).substr(at, size)));
    const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
    EXPECT_EQ(little(file, at + size, 4), masked) << "at byte " << at;
  };
  size_t at = 0;
  while (at < file.size()) {
    if (file.size() - at < 16) {
      ADD_FAILURE() << "a record is cut short";
      break;
    }
    const auto size = static_cast<size_t>(little(file, at, 8));
    checked(at, 8);
    if (file.size() - at < 16 + size) {
      ADD_FAILURE() << "an event is cut short";
      break;
    }
    checked(at + 12, size);
    events.push_back(file.substr(at + 12, size));
    at += 16 + size;
  }
  return events;
}

struct Field {
  uint64_t value = 0;
  std::string bytes;
};

// Fields of a message by number; of repeated ones the last.
std::map<uint32_t, Field> fields_of(const std::string& message) {
  std::map<uint32_t, Field> fields;
  ProtoReader reader(bytes_of_text(message), "event", "M");
  while (!reader.done()) {
    const auto field = reader.next();
    if (!field.ok()) {
      ADD_FAILURE() << field.error().message;
      break;
    }
    const auto* bytes = reinterpret_cast<const char*>(field->bytes.data());
    fields[field->number] = {field->value, std::string(bytes, field->bytes.size())};
  }
  return fields;
}

double as_double(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float as_float(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float value = 0;
  std::memcpy(&value, &low, sizeof value);
  return value;
}

std::string only_file_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().string());
  EXPECT_EQ(names.size(), 1U);
  return names.empty() ? "" : names[0];
}

TEST(TensorboardFile, HoldsWhatWasTold) {
  const std::string folder = fresh_folder("events");
  {
    auto sink = tensorboard_sink(folder + "/run", 1234);
    ASSERT_TRUE(sink.ok()) << sink.error().message;
    Record spread = scalar("weights/a", 2, 0);
    spread.kind = Record::Kind::histogram;
    spread.histogram = make_histogram(std::vector<float>{1, 2, 3, 4}, 2);
    Record image_record = scalar("network", 0, 0);
    image_record.kind = Record::Kind::picture;
    image_record.nodes = {{"input", "Placeholder", {}, {}},
                          {"d", "Dense", {"input"}, {{"k", "v"}}}};
    for (const Record& r : {scalar("loss", -3, 0.75), spread, image_record})
      ASSERT_TRUE((*sink)->write(r).ok());
    ASSERT_TRUE((*sink)->flush().ok());
  }
  const std::string path = only_file_in(folder + "/run");
  EXPECT_NE(path.find("events.out.tfevents.1234"), std::string::npos);
  const auto events = events_of(*read_file(path));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(fields_of(events[0])[3].bytes, "brain.Event:2");

  auto loss = fields_of(events[1]);
  EXPECT_EQ(as_double(loss[1].value), 997.5);
  EXPECT_EQ(static_cast<int64_t>(loss[2].value), -3);
  auto value = fields_of(fields_of(loss[5].bytes)[1].bytes);
  EXPECT_EQ(value[1].bytes, "loss");
  EXPECT_EQ(as_float(value[2].value), 0.75f);

  auto spread_value = fields_of(fields_of(fields_of(events[2])[5].bytes)[1].bytes);
  auto histo = fields_of(spread_value[5].bytes);
  EXPECT_EQ(as_double(histo[1].value), 1);
  EXPECT_EQ(as_double(histo[2].value), 4);
  EXPECT_EQ(as_double(histo[3].value), 4);
  EXPECT_EQ(as_double(histo[4].value), 10);
  EXPECT_EQ(as_double(histo[5].value), 30);
  ASSERT_EQ(histo[6].bytes.size(), 16U);
  ASSERT_EQ(histo[7].bytes.size(), 16U);

  auto node = fields_of(fields_of(fields_of(events[3])[4].bytes)[1].bytes);
  EXPECT_EQ(node[1].bytes, "d");
  EXPECT_EQ(node[2].bytes, "Dense");
  EXPECT_EQ(node[3].bytes, "input");
}

TEST(TensorboardFile, OfTwoRunsInOneSecondAreTwo) {
  const std::string folder = fresh_folder("same_second");
  auto first = tensorboard_sink(folder, 5), second = tensorboard_sink(folder, 5);
  ASSERT_TRUE(first.ok() && second.ok());
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 2);
}

// ---- Lines of JSON ------------------------------------------------------------------------------

TEST(JsonLines, AreAppendedAndReadBack) {
  const std::string path = fresh_folder("lines") + "/run.jsonl";
  for (int run = 0; run < 2; ++run) {
    auto sink = json_lines_sink(path);
    ASSERT_TRUE(sink.ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE((*sink)->write(scalar("a \"b\"", i, 0.1 * i)).ok());
    ASSERT_TRUE((*sink)->flush().ok());
  }
  const std::string text = *read_file(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  const auto line = parse_json(text.substr(0, text.find('\n')), "line");
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(*line->find("tag")->as_string("tag"), "a \"b\"");
  EXPECT_EQ(*line->find("value")->as_double("value"), 0);
}

TEST(JsonLines, SayNullForWhatIsNotFinite) {
  EXPECT_NE(json_line(scalar("x", 1, std::nan(""))).find("\"value\":null"), std::string::npos);
  EXPECT_NE(json_line(scalar("x", 1, -INFINITY)).find("\"value\":null"), std::string::npos);
}

// ---- Prometheus ---------------------------------------------------------------------------------

TEST(PrometheusText, HasTheLastValueOfEachTag) {
  const std::string path = fresh_folder("gauges") + "/loom.prom";
  auto sink = prometheus_sink(path);
  ASSERT_TRUE(sink.ok());
  for (const Record& r : {scalar("loss/train", 1, 2), scalar("loss/train", 2, 0.5),
                          scalar("loss train", 9, INFINITY), scalar("a\"b\\c", 1, 1)})
    ASSERT_TRUE((*sink)->write(r).ok());
  ASSERT_TRUE((*sink)->flush().ok());
  EXPECT_EQ(*read_file(path),
            "# TYPE loom_a_b_c gauge\n"
            "loom_a_b_c{tag=\"a\\\"b\\\\c\"} 1\n"
            "# TYPE loom_a_b_c_step gauge\n"
            "loom_a_b_c_step{tag=\"a\\\"b\\\\c\"} 1\n"
            "# TYPE loom_loss_train gauge\n"
            "loom_loss_train{tag=\"loss train\"} +Inf\n"
            "loom_loss_train{tag=\"loss/train\"} 0.5\n"
            "# TYPE loom_loss_train_step gauge\n"
            "loom_loss_train_step{tag=\"loss train\"} 9\n"
            "loom_loss_train_step{tag=\"loss/train\"} 2\n");
}

// ---- The queue ----------------------------------------------------------------------------------

struct Seen {
  std::mutex mutex;
  std::vector<int64_t> steps;
  int flushes = 0;
};

class Listing final : public Sink {
 public:
  explicit Listing(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  Status write(const Record& record) override {
    const std::lock_guard<std::mutex> lock(seen_->mutex);
    seen_->steps.push_back(record.step);
    return {};
  }
  Status flush() override {
    const std::lock_guard<std::mutex> lock(seen_->mutex);
    ++seen_->flushes;
    return {};
  }

 private:
  std::shared_ptr<Seen> seen_;
};

class Failing final : public Sink {
 public:
  Status write(const Record&) override { return make_error(Code::io_error, "no space", "x"); }
};

template <class... S>
std::vector<std::unique_ptr<Sink>> list_of(std::unique_ptr<S>... sinks) {
  std::vector<std::unique_ptr<Sink>> list;
  (list.push_back(std::move(sinks)), ...);
  return list;
}

TEST(Queue, HandsOnEveryRecordInOrder) {
  auto seen = std::make_shared<Seen>();
  RecordQueue queue(list_of(std::make_unique<Listing>(seen)), 100000);
  for (int i = 0; i < 5000; ++i) queue.push(scalar("x", i, 0));
  ASSERT_TRUE(queue.close(test::kDeadline).ok());
  ASSERT_EQ(seen->steps.size(), 5000U);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(seen->steps[static_cast<size_t>(i)], i);
  EXPECT_GT(seen->flushes, 0);
  EXPECT_EQ(queue.dropped(), 0);
}

TEST(Queue, DropsAndCountsWhereASinkHangs) {
  auto gate = std::make_shared<Gate>();
  RecordQueue queue(list_of(std::make_unique<Hanging>(gate)), 10);
  queue.push(scalar("x", 0, 0));
  gate->wait_until_reached();  // one is with the sink, none waits
  for (int i = 0; i < 100; ++i) queue.push(scalar("x", i, 0));
  EXPECT_EQ(queue.dropped(), 90);
  const Status closed = queue.close(std::chrono::milliseconds(20));
  ASSERT_FALSE(closed.ok());
  EXPECT_NE(closed.error().message.find("10 records that waited were dropped"), std::string::npos)
      << closed.error().message;
  EXPECT_EQ(queue.dropped(), 100);
  gate->let_go();
  EXPECT_TRUE(queue.close(test::kDeadline).ok());
}

TEST(Queue, GoesOnWithTheOtherSinksWhereOneFails) {
  auto seen = std::make_shared<Seen>();
  RecordQueue queue(list_of(std::make_unique<Failing>(), std::make_unique<Listing>(seen)), 1000);
  for (int i = 0; i < 50; ++i) queue.push(scalar("x", i, 0));
  const Status closed = queue.close(test::kDeadline);
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().message, "no space");
  EXPECT_EQ(seen->steps.size(), 50U);
}

TEST(Queue, TakesNothingAfterItWasClosed) {
  auto seen = std::make_shared<Seen>();
  RecordQueue queue(list_of(std::make_unique<Listing>(seen)), 10);
  ASSERT_TRUE(queue.close(test::kDeadline).ok());
  queue.push(scalar("x", 1, 0));
  EXPECT_EQ(queue.dropped(), 1);
  EXPECT_TRUE(seen->steps.empty());
}

TEST(Queue, TakesRecordsOfManyThreads) {
  auto seen = std::make_shared<Seen>();
  RecordQueue queue(list_of(std::make_unique<Listing>(seen)), 100000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&queue, t] {
      for (int i = 0; i < 500; ++i) queue.push(scalar("x", t * 1000 + i, 0));
    });
  }
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(queue.close(test::kDeadline).ok());
  EXPECT_EQ(seen->steps.size(), 2000U);
  std::map<int64_t, int64_t> last;  // each thread's own order
  for (const int64_t step : seen->steps) {
    const auto [at, first] = last.try_emplace(step / 1000, step);
    if (first) continue;
    EXPECT_GT(step, at->second);
    at->second = step;
  }
}

}  // namespace
}  // namespace loom::core
