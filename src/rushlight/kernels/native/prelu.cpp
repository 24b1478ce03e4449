// Rectifiers with a slope for each channel: x is (outer, channels, inner), the slopes (channels).
#include "maps.h"

namespace rl {

constexpr long kRows = 64;   // rows whose parts of a slope's gradient are added up in their own precision
constexpr long kRun = 4096;  // and neighbours

template <class T> RL_INLINE T bent(T v, T value, T slope) {
    T scaled = value * slope;  // of all, which is SIMD code
    return v > 0 ? value : scaled;
}

// `value` times the slope where x is not over 0: of x itself, or of a gradient.
template <class U> static void prelu(const U *value, const U *x, const U *w, U *o, long outer, long channels, long inner) {
    if (inner == 1)
        return parallel_for(outer, row_grain(channels), [=](long begin, long end) {
            for (long at = begin * channels; at < end * channels; at += channels)
                turn3(x + at, value + at, w, o + at, channels, [](auto v, auto d, auto slope) { return bent(v, d, slope); });
        });
    parallel_for(outer * channels, row_grain(inner), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const auto slope = widened(w[r % channels]);
            turn2(x + r * inner, value + r * inner, o + r * inner, inner, [=](long, WideOf<U> v, WideOf<U> d) { return bent(v, d, slope); });
        }
    });
}

template <class T> RL_INLINE T below(T g, T v) {
    T scaled = g * v;
    return v > 0 ? T(0) : scaled;
}

// What slopes have for a gradient, in parts to be added up: of kRows rows each, or of one where inner > 1.
template <class U, class T = WideOf<U>> static void prelu_parts(const U *g, const U *x, T *parts, long outer, long channels, long inner) {
    if (inner == 1)
        return parallel_for(ceil_div(outer, kRows), row_grain(channels * kRows), [=](long begin, long end) {
            for (long part = begin; part < end; ++part) {
                T *sum = parts + part * channels;
                std::memset(sum, 0, sizeof(T) * channels);
                const long last = (part + 1) * kRows < outer ? (part + 1) * kRows : outer;
                for (long r = part * kRows; r < last; ++r)
                    pieces2<kAtOnce>(g + r * channels, x + r * channels, channels, [=](long at, const T *d, const T *v, long some) {
#pragma omp simd
                        for (long c = 0; c < some; ++c) sum[at + c] += below(d[c], v[c]);
                    });
            }
        });
    parallel_for(outer * channels, row_grain(inner), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            double total = 0;
            pieces2<kRun>(g + r * inner, x + r * inner, inner, [&](long, const T *d, const T *v, long some) {
                T sum = 0;
#pragma omp simd reduction(+ : sum)
                for (long i = 0; i < some; ++i) sum += below(d[i], v[i]);
                total += sum;
            });
            parts[r] = (T)total;
        }
    });
}

}  // namespace rl

// Of 16 bits the parts are in float32.
#define ALL(T, S)                                                                                                \
    RL_EXPORT void rl_prelu_##S(Array *value_, Array *x_, Array *w_, Array *o_, long outer, long channels, long inner) { \
        rl::Call call("prelu");                                                                                  \
        const T *value = call.in<T>("value", value_, outer, channels, inner);                                    \
        const T *x = call.in<T>("input", x_, outer, channels, inner);                                            \
        const T *w = call.in<T>("weight", w_, channels);                                                         \
        T *o = call.out<T>("out", o_, outer, channels, inner);                                                   \
        call.run([=] { rl::prelu(value, x, w, o, outer, channels, inner); });                                    \
    }                                                                                                            \
    RL_EXPORT void rl_prelu_parts_##S(Array *g_, Array *x_, Array *parts_, long outer, long channels, long inner) { \
        rl::Call call("prelu_parts");                                                                            \
        const T *g = call.in<T>("gradient", g_, outer, channels, inner);                                         \
        const T *x = call.in<T>("input", x_, outer, channels, inner);                                            \
        auto *parts = call.out<rl::WideOf<T>>("parts", parts_, inner == 1 ? rl::ceil_div(outer, rl::kRows) : outer, channels);  \
        call.run([=] { rl::prelu_parts(g, x, parts, outer, channels, inner); });                                 \
    }
RL_ALL(ALL)
