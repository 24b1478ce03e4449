// A number that tells bytes from others: of what goes to disk and comes back.
//
// Lanes that vector registers hold, each of every 64th word: a word is mixed in by steps that can be undone (exclusive or,
// rotation, product with an odd number), so that a lane ends elsewhere whenever one of its words differs.  Words are mixed before
// they meet the lane: else a highest bit that differs would be undone by one that differs in the next word.
#include "common.h"

namespace rl {
namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // of the golden ratio: bits without a pattern
constexpr long kLanes = 64;

template <class T> inline T turned(T x, int by) { return x << by | x >> (8 * sizeof x - by); }

template <class T> inline T mixed(T lane, T word) {
    return turned<T>(lane ^ turned<T>(word * (T)(kOdd >> 32 | 1), 15), 13) * (T)kOdd;
}

inline void mix(uint32_t *lanes, const uint8_t *data) {
    uint32_t words[kLanes];
    std::memcpy(words, data, sizeof words);
#pragma omp simd
    for (long k = 0; k < kLanes; ++k) lanes[k] = mixed(lanes[k], words[k]);
}

uint64_t digest(const uint8_t *data, long count, uint64_t start) {
    uint32_t lanes[kLanes];
    for (long k = 0; k < kLanes; ++k) lanes[k] = (uint32_t)k;
    const long block = sizeof lanes;
    long i = 0;
    for (; i + block <= count; i += block) mix(lanes, data + i);
    uint8_t rest[sizeof lanes] = {};
    if (i < count) std::memcpy(rest, data + i, count - i);
    mix(lanes, rest);
    uint64_t all = mixed(start, (uint64_t)count);
    for (long k = 0; k < kLanes; k += 2) all = mixed(all, (uint64_t)lanes[k] << 32 | lanes[k + 1]);
    return all ^ all >> 32;
}

}  // namespace
}  // namespace rl

RL_EXPORT long rl_digest_bytes(Array *data_, long count, uint64_t start) {
    rl::Call call("digest");
    const uint8_t *data = call.in<uint8_t>("data", data_, count);
    uint64_t found = 0;
    call.run([&] { found = rl::digest(data, count, start); });
    return (long)found;
}
