// The packed bytes of every type, as hashes. They are the same for every compiler, flag,
// instruction set, system and version, because model files hold these bytes. A changed hash is a
// changed file format.
#include <set>

#include "samples.hpp"

namespace loom::core {
namespace {

struct Golden {
  DType dtype;
  uint64_t hash;
};

void PrintTo(const Golden& g, std::ostream* os) {
  *os << dtype_name(g.dtype);
}

// 37 x 150, roughly normal, spread over magnitudes, from integers and exact operations only.
std::vector<float> exact_samples() {
  const Rng rng(2024, 5);
  std::vector<float> x(37 * 150);
  for (uint64_t i = 0; i < x.size(); ++i) {
    float sum = -2.0f;
    for (uint64_t j = 0; j < 4; ++j) sum += rng.uniform(5 * i + j);
    x[i] = std::ldexp(sum, static_cast<int>(rng.bits(5 * i + 4) % 7) - 5);
  }
  x[10] = 0.0f;
  x[11] = -0.0f;
  x[700] = std::numeric_limits<float>::infinity();
  x[701] = -x[700];
  return x;
}

uint64_t fnv1a(const std::vector<std::byte>& bytes, uint64_t hash) {
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

class GoldenBytes : public testing::TestWithParam<Golden> {};

TEST_P(GoldenBytes, AreTheSameEverywhere) {
  const auto x = exact_samples();
  const R16 g = r16_geometry(GetParam().dtype, 37, 150);
  const TensorRange range = tensor_range(x.data(), 37 * 150);
  uint64_t hash = 0xcbf29ce484222325u;
  for (const ScaleScope scope : {ScaleScope::per_row, ScaleScope::per_tensor}) {
    std::vector<std::byte> data(static_cast<size_t>(g.bytes()));
    r16_pack(g, x.data(), 0, 37, scope, range, data.data());
    hash = fnv1a(data, hash);
  }
  EXPECT_EQ(hash, GetParam().hash) << std::hex << "0x" << hash;
}

const Golden kGolden[] = {
    {DType::f64, 0x4563c19e554e233du},    {DType::f32, 0xb2f7232713d8a655u},
    {DType::f16, 0x7bf8b73c092f0a6du},    {DType::bf16, 0xce27e979e7bd8dc9u},
    {DType::f8e4m3, 0x364f854765fd5ed2u}, {DType::f8e5m2, 0x176779f5d0661a47u},
    {DType::i64, 0x3dcb9ea4230e5bfdu},    {DType::i32, 0x22cb8fd18d6d8a19u},
    {DType::i16, 0xd7deab2d3bac6b01u},    {DType::i8, 0x7a3df07fafc42fb4u},
    {DType::u64, 0xb699ac26a67d09adu},    {DType::u32, 0x58accab0aa7d6a21u},
    {DType::u16, 0x6e1d6fb846149af9u},    {DType::u8, 0x566edf63809d8ba4u},
    {DType::i4, 0xcb68502eeb336cbeu},     {DType::u4, 0x00147f26c7dfc579u},
    {DType::f4, 0xc75dcf7b06ac82b8u},     {DType::i2, 0xb5eacb2d8031da00u},
    {DType::u2, 0xfff3181f178755e5u},     {DType::ternary, 0xf180bdfd09132645u},
    {DType::binary, 0xbed09f0d092f44b5u}, {DType::nf4, 0x96c28a74169c0b85u},
    {DType::e3m0, 0x3ae6aa5fe944a6a4u},   {DType::q4_0, 0x7f4c7d55dc1ca24du},
    {DType::q8_0, 0xe54390af1738d4edu},   {DType::mxfp4, 0xd4ecfbc8fc61e3e5u},
    {DType::nvfp4, 0x0f6c7664f5917db5u},  {DType::q2_k, 0xcb6d76ef2d048da5u},
    {DType::q3_k, 0xeda43bb888fa2751u},   {DType::q4_k, 0x41155e3ff74af8a5u},
    {DType::q5_k, 0x684dfeea119d65d5u},   {DType::q6_k, 0x9c69bf3b1b752079u},
    {DType::q4_1, 0x5674c5c7ec870ea5u},   {DType::q5_0, 0x58fe834307356481u},
    {DType::q5_1, 0x75e3c16368039545u},   {DType::u4g64, 0x1610e0dcd8e7bf65u},
    {DType::u4g128, 0xfe34e86c13557c1du},
};

INSTANTIATE_TEST_SUITE_P(Types, GoldenBytes, testing::ValuesIn(kGolden),
                         [](const auto& row) { return std::string(dtype_name(row.param.dtype)); });

TEST(GoldenBytesTable, NamesEveryReleasedType) {
  std::set<DType> named;
  for (const Golden& golden : kGolden) named.insert(golden.dtype);
  for (const DTypeInfo& info : dtype_table()) {
    EXPECT_EQ(named.count(info.dtype) == 1, released(info.dtype)) << info.name;
  }
}

}  // namespace
}  // namespace loom::core
