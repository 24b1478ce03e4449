// Numbers of the Mersenne Twister (Matsumoto and Nishimura, 1998), made of the state where NumPy keeps it, and numbers put into another
// order.
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

// The next words, as many as are there up to `count`: at `put(index, words, how many)`.
template <class F> void each_words(Twister *t, long count, F put) {
    uint32_t drawn[kWords];
    for (long done = 0; done < count;) {
        if (t->position == kWords) {
            twist(t->words);
            t->position = 0;
        }
        const long rest = kWords - t->position, n = count - done < rest ? count - done : rest;
#pragma omp simd
        for (long i = 0; i < n; ++i) drawn[i] = tempered(t->words[t->position + i]);
        t->position += (int)n;
        put(done, drawn, n);
        done += n;
    }
}

// What is rounded to the end becomes the start.
void evenly(Twister *t, float *out, long n, double start, double span, double end) {
    each_words(t, n, [=](long at, const uint32_t *w, long count) {
#pragma omp simd
        for (long i = 0; i < count; ++i) {
            const float x = (float)((double)(w[i] & 0xffffffu) * 0x1p-24 * span + start);
            out[at + i] = x == (float)end ? (float)start : x;
        }
    });
}

// Words are drawn into `out`, then made numbers there: a number takes as many bytes as its words.
void evenly(Twister *t, double *out, long n, double start, double span, double end) {
    uint32_t *words = (uint32_t *)out;
    each_words(t, 2 * n, [=](long at, const uint32_t *w, long count) { std::memcpy(words + at, w, count * sizeof *w); });
    for (long i = 0; i < n; ++i) {
        uint32_t both[2];
        std::memcpy(both, out + i, sizeof both);
        const uint64_t low = ((uint64_t)(both[0] & 0x1fffffu) << 32) | both[1];
        const double x = (double)(int64_t)low * 0x1p-53 * span + start;
        out[i] = x == end ? start : x;
    }
}

}  // namespace
}  // namespace rl

#define RL_TWISTER(T, S)                                                                                             \
    RL_EXPORT void rl_evenly_##S(uint64_t state, Array *out_, long n, double start, double span,       \
                                 double end) {                                                                      \
        rl::Call call("evenly");                                                                                    \
        T *out = call.out<T>("out", out_, n);                                                                       \
        call.run([=] { rl::evenly((rl::Twister *)state, out, n, start, span, end); });                              \
    }

RL_TWISTER(float, f32)
RL_TWISTER(double, f64)

RL_EXPORT void rl_words_bytes(uint64_t state, Array *out_, long n) {
    rl::Call call("words");
    uint32_t *out = call.out<uint32_t>("out", out_, n);
    call.run([=] {
        rl::each_words((rl::Twister *)state, n, [=](long at, const uint32_t *w, long count) {
            std::memcpy(out + at, w, count * sizeof *w);
        });
    });
}

RL_EXPORT void rl_shuffle_bytes(Array *numbers_, Array *drawn_, long n) {
    rl::Call call("shuffle");
    int64_t *numbers = call.out<int64_t>("numbers", numbers_, n);
    const int64_t *drawn = call.in<int64_t>("drawn", drawn_, n - 1);
    call.run([=] {
        for (long i = 0; i + 1 < n; ++i) std::swap(numbers[i], numbers[i + drawn[i]]);
    });
}
