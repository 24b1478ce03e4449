// The Mersenne Twister of 32 bits (Matsumoto and Nishimura, 1998), on the state where NumPy keeps it.
#pragma once

#include "common.h"

namespace rl {
namespace {

constexpr int kWords = 624, kShift = 397;

struct Twister {  // as NumPy lays it out
    uint32_t words[kWords];
    int position;
};

inline uint32_t twisted(uint32_t a, uint32_t b, uint32_t far) {
    const uint32_t both = (a & 0x80000000u) | (b & 0x7fffffffu);
    return far ^ both >> 1 ^ (b & 1 ? 0x9908b0dfu : 0u);
}

void twist(uint32_t *w) {
#pragma omp simd
    for (int i = 0; i < kWords - kShift; ++i) w[i] = twisted(w[i], w[i + 1], w[i + kShift]);
    // What lies 227 before was made in the loop above or earlier in this one: no vector reaches as far.
#pragma omp simd safelen(16)
    for (int i = kWords - kShift; i < kWords - 1; ++i) w[i] = twisted(w[i], w[i + 1], w[i + kShift - kWords]);
    w[kWords - 1] = twisted(w[kWords - 1], w[0], w[kShift - 1]);
}

inline uint32_t tempered(uint32_t y) {
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

}  // namespace
}  // namespace rl
