// Numbers of the Mersenne Twister, made of its state, and numbers put into another order.
#include "twister.h"

#include <algorithm>

#include "memory.h"
#include "vecmath.h"

namespace rl {
namespace {

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

// Goes on by as many words without making numbers of them.
void skip(Twister *t, long count) {
    while (count > kWords - t->position) {
        count -= kWords - t->position;
        twist(t->words);
        t->position = 0;
    }
    t->position += (int)count;
}

// Bits in the order in which they come, the lowest of a byte first.
struct Bits {
    uint8_t *out, waiting[8 + kWords / 2 + 1];
    long held = 0;

    void add(const uint8_t *bits, long n) {
        std::memcpy(waiting + held, bits, n);
        held += n;
        const long bytes = held / 8;
        for (long i = 0; i < bytes; ++i) {
            uint64_t eight;
            std::memcpy(&eight, waiting + 8 * i, 8);
            *out++ = (uint8_t)(eight * 0x0102040810204080u >> 56);  // byte i, 0 or 1, becomes bit i of the uppermost
        }
        held -= 8 * bytes;
        std::memmove(waiting, waiting + 8 * bytes, held);
    }

    void end() {
        const uint8_t none[8] = {};
        if (held) add(none, 8 - held);
    }
};

// Coins: set where the number in [0, 2^53) of two words is below `limit`.  Of each `n` that are drawn the first `columns` are kept.
void coins(Twister *t, uint8_t *out, long rows, long n, long columns, uint64_t limit) {
    Bits bits{out};
    uint32_t upper = 0;  // of a pair that the end of the state parts
    bool parted = false;
    long column = 0;
    each_words(t, 2 * rows * n, [&](long, const uint32_t *w, long count) {
        uint8_t below[kWords / 2 + 1];
        long made = 0, first = 0;
        if (parted) below[made++] = ((uint64_t)(upper & 0x1fffffu) << 32 | w[first++]) < limit;
        const long pairs = (count - first) / 2;
#pragma omp simd
        for (long i = 0; i < pairs; ++i)
            below[made + i] = ((uint64_t)(w[first + 2 * i] & 0x1fffffu) << 32 | w[first + 2 * i + 1]) < limit;
        made += pairs;
        parted = (count - first) % 2;
        upper = w[count - 1];
        for (long i = 0; i < made;) {
            const long end = column < columns ? columns : n, some = std::min(made - i, end - column);
            if (column < columns) bits.add(below + i, some);
            i += some, column = column + some == n ? 0 : column + some;
        }
    });
    bits.end();
}

// Exponential numbers of rate 1: -log(1 - u) of numbers u in [0, 1) of 53 bits, of which 1 - u is exact.
void exponentials(Twister *t, double *out, long n) {
    evenly(t, out, n, 0.0, 1.0, 1.0);
#pragma omp simd
    for (long i = 0; i < n; ++i) out[i] = 0.0 - log_of_normal(1.0 - out[i]);
}

// Numbers in [0, 1), 8 that give radii before 8 that give angles, made normal (Box and Muller, 1958).
void box_muller(float *x, long blocks) {
    parallel_for(blocks, kGrain / 16, [=](long begin, long end) {
        for (long b = begin; b < end; ++b) {
            float *radii = x + 16 * b, *angles = radii + 8;
#pragma omp simd
            for (int i = 0; i < 8; ++i) {
                const float radius = std::sqrt(-2.0f * log_of_normal(1.0f - radii[i]));
                float sine, cosine;
                sin_cos(6.28318530718f * angles[i], sine, cosine);
                radii[i] = radius * cosine, angles[i] = radius * sine;
            }
        }
    });
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

RL_EXPORT void rl_coins_bytes(Array *state_, Array *bits_, long rows, long n, long columns, uint64_t limit) {
    rl::Call call("coins");
    uint32_t *state = call.out<uint32_t>("state", state_, rl::kWords + 1);
    uint8_t *bits = call.out<uint8_t>("bits", bits_, (rows * columns + 7) / 8);
    call.run([=] { rl::coins((rl::Twister *)state, bits, rows, n, columns, limit); });
}

RL_EXPORT void rl_skip_bytes(uint64_t state, long count) {
    rl::Call call("skip");
    call.run([=] { rl::skip((rl::Twister *)state, count); });
}

RL_EXPORT void rl_box_muller_bytes(Array *numbers_, long blocks) {
    rl::Call call("box_muller");
    float *numbers = call.out<float>("numbers", numbers_, 16 * blocks);
    call.run([=] { rl::box_muller(numbers, blocks); });
}

RL_EXPORT void rl_exponentials_bytes(uint64_t state, Array *out_, long n) {
    rl::Call call("exponentials");
    double *out = call.out<double>("out", out_, n);
    call.run([=] { rl::exponentials((rl::Twister *)state, out, n); });
}
