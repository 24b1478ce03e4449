// The checksum of zip archives (CRC-32, polynomial 0x04c11db7 reflected), several times as fast as zlib's.
//
// Where the processor multiplies without carries, 64 bytes are folded at a time (Gopal et al., "Fast CRC computation for generic
// polynomials using PCLMULQDQ", Intel 2009); else, and for what is left, 16 bytes are looked up in tables at a time (Kounavis and
// Berry, "A systematic approach to building high performance software-based CRC generators", 2005).
#include "common.h"

#include <array>
#if defined(__x86_64__)
#include <immintrin.h>
#define RL_CARRYLESS __attribute__((target("pclmul,sse4.1")))
#endif

namespace rl {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 16>;

// [k][b]: what a byte b does to the register when k more bytes follow.
constexpr Tables tables() {
    Tables found{};
    for (uint32_t b = 0; b < 256; ++b) {
        uint32_t c = b;
        for (int k = 0; k < 8; ++k) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        found[0][b] = c;
    }
    for (int k = 1; k < 16; ++k)
        for (int b = 0; b < 256; ++b) found[k][b] = found[k - 1][b] >> 8 ^ found[0][found[k - 1][b] & 255];
    return found;
}

constexpr Tables kTables = tables();

// The register after `count` bytes more.
uint32_t looked_up(const uint8_t *data, long count, uint32_t c) {
    long i = 0;
    for (; i + 16 <= count; i += 16) {
        uint32_t next = 0;
        for (int k = 0; k < 16; ++k) next ^= kTables[15 - k][data[i + k] ^ (k < 4 ? c >> 8 * k & 255 : 0)];
        c = next;
    }
    for (; i < count; ++i) c = c >> 8 ^ kTables[0][(c ^ data[i]) & 255];
    return c;
}

#ifdef RL_CARRYLESS
constexpr long kFolded = 64;

RL_CARRYLESS inline __m128i at(const uint8_t *data) { return _mm_loadu_si128(reinterpret_cast<const __m128i *>(data)); }

RL_CARRYLESS inline __m128i folded(__m128i x, __m128i next, __m128i by) {
    const __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// As `looked_up`, for at least 64 bytes.
RL_CARRYLESS uint32_t multiplied(const uint8_t *data, long count, uint32_t c) {
    const __m128i far = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);   // x^(512 - 32), x^(512 + 32) modulo the polynomial
    const __m128i near = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);  // of 128
    __m128i x[4];
    for (int k = 0; k < 4; ++k) x[k] = at(data + 16 * k);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)c));
    long i = kFolded;
    for (; i + kFolded <= count; i += kFolded)
        for (int k = 0; k < 4; ++k) x[k] = folded(x[k], at(data + i + 16 * k), far);
    for (int k = 1; k < 4; ++k) x[k] = folded(x[k - 1], x[k], near);
    for (; i + 16 <= count; i += 16) x[3] = folded(x[3], at(data + i), near);
    uint8_t rest[16];
    _mm_storeu_si128(reinterpret_cast<__m128i *>(rest), x[3]);
    return looked_up(data + i, count - i, looked_up(rest, 16, 0));
}
#endif

uint32_t crc32(const uint8_t *data, long count, uint32_t start) {
#ifdef RL_CARRYLESS
    static const bool carryless = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    if (carryless && count >= kFolded) return ~multiplied(data, count, ~start);
#endif
    return ~looked_up(data, count, ~start);
}

}  // namespace
}  // namespace rl

RL_EXPORT long rl_crc32_bytes(Array *data_, long count, uint64_t start) {
    rl::Call call("crc32");
    const uint8_t *data = call.in<uint8_t>("data", data_, count);
    uint32_t found = 0;
    call.run([&] { found = rl::crc32(data, count, (uint32_t)start); });
    return (long)found;
}
