// PagePool: random sequences over few tokens, compared with a simple reference that records the
// text of each position of each page. A sequence finds its own text, even if pages are shared,
// copied or evicted.
#include "llm/sessions/page_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Tokens = std::vector<TokenId>;

// The keys and values of a position depend on all tokens up to it.
using Written = std::string;
Written written(const Tokens& text, size_t position) {
  Written out;
  for (size_t i = 0; i <= position; ++i) out += static_cast<char>('a' + text[i]);
  return out;
}

struct Rig {
  Rig(int64_t pages, int64_t sequences, int64_t capacity)
      : memory(static_cast<size_t>(pages * PagePool::kPage)),
        tables(static_cast<size_t>(sequences),
               std::vector<int32_t>(static_cast<size_t>(capacity / PagePool::kPage))),
        texts(static_cast<size_t>(sequences)),
        pool(pages, spans()) {}
  std::vector<std::span<int32_t>> spans() {
    std::vector<std::span<int32_t>> out;
    for (std::vector<int32_t>& table : tables) out.emplace_back(table);
    return out;
  }
  size_t flat_index(size_t s, size_t position) const {
    return static_cast<size_t>(tables[s][position / 16]) * 16 + position % 16;
  }
  bool feed(size_t s, const Tokens& more) {
    std::vector<PagePool::Copy> copies;
    const auto from = static_cast<int64_t>(texts[s].size());
    const auto count = static_cast<int64_t>(more.size());
    const bool room = pool.write(static_cast<int64_t>(s), from, from + count, copies);
    for (const PagePool::Copy& copy : copies) {
      for (size_t i = 0; i < 16; ++i) {
        memory[static_cast<size_t>(copy.to) * 16 + i] =
            memory[static_cast<size_t>(copy.from) * 16 + i];
      }
    }
    if (!room) return false;
    texts[s].insert(texts[s].end(), more.begin(), more.end());
    for (auto p = static_cast<size_t>(from); p < texts[s].size(); ++p)
      memory[flat_index(s, p)] = written(texts[s], p);
    pool.read(static_cast<int64_t>(s), texts[s]);
    return true;
  }
  void expect_own_texts(uint32_t seed) const {
    for (size_t s = 0; s < texts.size(); ++s) {
      for (size_t p = 0; p < texts[s].size(); ++p) {
        ASSERT_EQ(memory[flat_index(s, p)], written(texts[s], p))
            << "seed " << seed << " sequence " << s << " position " << p;
      }
    }
  }

  std::vector<Written> memory;
  std::vector<std::vector<int32_t>> tables;
  std::vector<Tokens> texts;
  PagePool pool;
};

class RandomPool {
 public:
  explicit RandomPool(uint32_t of) : random_(of), seed_(of) {}
  void run() {
    const int64_t sequences = 1 + any(5), capacity = 64;
    const int64_t pages = 4 + any(4 * sequences - 4);
    Rig rig(pages, sequences, capacity);
    for (int step = 0; step < 200; ++step) {
      const auto s = static_cast<size_t>(any(sequences - 1));
      act(rig, s, capacity);
      rig.expect_own_texts(seed_);
      if (testing::Test::HasFatalFailure()) return;
    }
    found_ += rig.pool.found();
    evicted_ += rig.pool.evicted();
  }
  int64_t found() const { return found_; }
  int64_t evicted() const { return evicted_; }

 private:
  int64_t any(int64_t most) { return static_cast<int64_t>(random_()) % (most + 1); }
  // Long runs of one token, so that texts begin alike.
  Tokens some(int64_t count) {
    Tokens out(static_cast<size_t>(count), 0);
    for (TokenId& id : out) id = any(19) == 0 ? static_cast<TokenId>(any(1)) + 1 : 0;
    return out;
  }
  void act(Rig& rig, size_t s, int64_t capacity) {
    const auto sequence = static_cast<int64_t>(s);
    Tokens& text = rig.texts[s];
    const auto length = static_cast<int64_t>(text.size());
    switch (any(7)) {
      case 0:
        text.resize(static_cast<size_t>(any(length)));
        rig.pool.rewind(sequence, static_cast<int64_t>(text.size()));
        return;
      case 1: rig.pool.publish(sequence, text); return;
      case 7:
        if (any(2) > 0) return;
        rig.pool.erase(sequence);
        text.clear();
        return;
      case 2: {
        rig.pool.release(sequence, text);
        const Tokens requested = some(any(capacity));
        const int64_t count = rig.pool.adopt(sequence, requested);
        ASSERT_LE(count, static_cast<int64_t>(requested.size()));
        text.assign(requested.begin(), requested.begin() + count);
        return;
      }
      default: {
        const int64_t count = std::min(1 + any(any(2) == 0 ? 30 : 3), capacity - length);
        if (count > 0) rig.feed(s, some(count));
      }
    }
  }
  std::mt19937 random_;
  uint32_t seed_;
  int64_t found_ = 0, evicted_ = 0;
};

TEST(PagePools, LetEverySequenceFindItsOwnText) {
  const char* setting = std::getenv("LOOM_POOL_CASES");
  const int cases = setting != nullptr ? std::atoi(setting) : 300;
  int64_t found = 0, evicted = 0;
  for (int i = 0; i < cases; ++i) {
    RandomPool pool(static_cast<uint32_t>(i));
    pool.run();
    if (HasFatalFailure()) return;
    found += pool.found();
    evicted += pool.evicted();
  }
  EXPECT_GT(found, cases * 50);  // the test is about these
  EXPECT_GT(evicted, cases);
}

TEST(PagePools, KeepCommonBeginningsOnce) {
  Rig rig(8, 3, 64);
  const Tokens text(40, 1);
  ASSERT_TRUE(rig.feed(0, text));
  rig.pool.publish(0, rig.texts[0]);
  for (size_t s = 1; s < 3; ++s) {
    EXPECT_EQ(rig.pool.adopt(static_cast<int64_t>(s), text), 40);
    rig.texts[s] = text;
  }
  EXPECT_EQ(rig.tables[1], rig.tables[0]);
  EXPECT_EQ(rig.tables[2], rig.tables[0]);
  // A sequence that continues gets a copy of the last partial page.
  ASSERT_TRUE(rig.feed(1, {2}));
  EXPECT_EQ(rig.tables[1][1], rig.tables[0][1]);
  EXPECT_NE(rig.tables[1][2], rig.tables[0][2]);
  rig.expect_own_texts(0);
}

TEST(PagePools, ShareNothingBetweenSalts) {
  Rig rig(8, 3, 64);
  const Tokens text(40, 1);
  rig.pool.set_salt(0, 7);
  ASSERT_TRUE(rig.feed(0, text));
  rig.pool.publish(0, rig.texts[0]);
  EXPECT_EQ(rig.pool.adopt(1, text), 0);
  rig.pool.set_salt(1, 8);
  EXPECT_EQ(rig.pool.adopt(1, text), 0);
  rig.pool.set_salt(1, 7);
  EXPECT_EQ(rig.pool.adopt(1, text), 40);
}

TEST(PagePools, NeverFindWhatWasErasedButForWhatAnotherHas) {
  Rig rig(8, 3, 64);
  const Tokens text(40, 1);
  ASSERT_TRUE(rig.feed(0, text));
  rig.pool.publish(0, rig.texts[0]);
  ASSERT_EQ(rig.pool.adopt(1, Tokens(20, 1)), 20);  // the first page, and a part of the second
  rig.pool.erase(0);
  rig.texts[0].clear();
  EXPECT_EQ(rig.pool.adopt(2, text), 32);
  rig.pool.erase(2);
  rig.pool.erase(1);
  EXPECT_EQ(rig.pool.adopt(2, text), 0);
}

TEST(PagePools, HaveOnePageOfWhatTwoSequencesReadAtOnce) {
  Rig rig(4, 2, 32);
  const Tokens text(20, 1);
  ASSERT_TRUE(rig.feed(0, text));
  ASSERT_TRUE(rig.feed(1, text));
  EXPECT_EQ(rig.tables[0][0], rig.tables[1][0]);
  EXPECT_NE(rig.tables[0][1], rig.tables[1][1]);
}

TEST(PagePools, TakeWhatIsLongestOutOfUse) {
  Rig rig(3, 2, 48);
  const Tokens a(16, 1), b(16, 2), c(16, 3), d(16, 4);
  for (const Tokens& text : {a, b, c, a}) {
    rig.pool.release(0, rig.texts[0]);
    rig.texts[0].clear();
    const int64_t known = rig.pool.adopt(0, text);
    rig.texts[0].assign(text.begin(), text.begin() + known);
    if (known == 0) {
      ASSERT_TRUE(rig.feed(0, text));
    }
  }
  rig.pool.release(0, rig.texts[0]);
  rig.texts[0].clear();
  ASSERT_TRUE(rig.feed(1, d));  // in the place of b
  EXPECT_EQ(rig.pool.evicted(), 1);
  EXPECT_EQ(rig.pool.adopt(0, b), 0);
  EXPECT_EQ(rig.pool.adopt(0, a), 16);
}

TEST(PagePools, BookWhatThereIs) {
  Rig rig(4, 2, 64);
  EXPECT_TRUE(rig.pool.book(0, 33));
  EXPECT_FALSE(rig.pool.book(1, 17));
  EXPECT_TRUE(rig.pool.book(1, 16));
  EXPECT_TRUE(rig.feed(0, Tokens(33, 0)));
  EXPECT_TRUE(rig.feed(1, Tokens(16, 1)));
  EXPECT_FALSE(rig.feed(1, Tokens(1, 1)));
  rig.expect_own_texts(0);
  EXPECT_TRUE(rig.pool.book(0, 0));
  EXPECT_FALSE(rig.pool.book(1, 17));  // it still has them
  rig.pool.release(0, rig.texts[0]);
  EXPECT_TRUE(rig.pool.book(1, 17));
}

}  // namespace
}  // namespace loom::core
