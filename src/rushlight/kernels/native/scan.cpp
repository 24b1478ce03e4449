// Running sums, products, logarithms of sums and extremes along a dimension: (outer, count, inner), from its end where `back`.
#include "sixteen.h"
#include "vecmath.h"

namespace rl {

// Sums and products of float32 and of 16 bits are kept in double.
struct Sum {
    static constexpr bool kLong = false;
    static double first() { return 0; }
    RL_MEMBER double operator()(double a, double b) const { return a + b; }
};
struct Product {
    static constexpr bool kLong = false;
    static double first() { return 1; }
    RL_MEMBER double operator()(double a, double b) const { return a * b; }
};

struct LogSum {
    static constexpr bool kLong = true;
    static double first() { return -infinity<double>(); }
    RL_MEMBER double operator()(double a, double b) const { return logaddexp(a, b); }
};

constexpr int kTogether = 8;  // rows or columns taken together, so that one need not wait for the sum before

// `width` runs at once, whose elements lie `apart` from one another, the next of each `step` on.
template <int width, class U, class J> RL_INLINE void scan(const U *x, U *o, long count, long step, long apart, J join) {
    alignas(64) double run[width];  // GCC 12 writes to it as aligned, which its stack is not else
    for (int k = 0; k < width; ++k) run[k] = J::first();
    for (long i = 0; i < count; ++i, x += step, o += step)
        if constexpr (J::kLong && !kPlain<U>) {  // compilers make no SIMD code of joins beside conversions of float16
            float next[width];
            for (int k = 0; k < width; ++k) next[k] = widened(x[k * apart]);
            for (int k = 0; k < width; ++k) run[k] = join(run[k], (double)next[k]);
            for (int k = 0; k < width; ++k) o[k * apart] = narrowed<U>((float)run[k]);
        } else {
            for (int k = 0; k < width; ++k) {
                run[k] = join(run[k], (double)widened(x[k * apart]));
                o[k * apart] = narrowed<U>((WideOf<U>)run[k]);
            }
        }
}

template <class T, class J> static void scans(const T *x, T *o, long outer, long count, long inner, bool back, J join) {
    const long step = back ? -inner : inner, start = back ? (count - 1) * inner : 0;
    const long runs = outer * inner, apart = inner == 1 ? count : 1;
    const long row = inner == 1 ? outer : inner;  // runs that lie regularly apart
    const long groups = (row + kTogether - 1) / kTogether;
    parallel_for(runs / row * groups, kGrain / (count * kTogether) + 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % groups * kTogether;
            const long at = start + i / groups * count * inner + first * apart;
            if (row - first >= kTogether) scan<kTogether>(x + at, o + at, count, step, apart, join);
            else
                for (long k = first; k < row; ++k) scan<1>(x + at + (k - first) * apart, o + at + (k - first) * apart, count, step, apart, join);
        }
    });
}

// The last of equal elements is where the extreme lies; a NaN stays it.
template <class T> static void extremes(const T *x, T *o, int64_t *where, long outer, long count, long inner, bool least) {
    parallel_for(outer * inner, kGrain / (count + 1) + 1, [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const long base = r / inner * count * inner + r % inner;
            WideOf<T> best = widened(x[base]);
            int64_t at = 0;
            for (long i = 0; i < count; ++i) {
                const WideOf<T> v = widened(x[base + i * inner]);
                const bool better = v != v || (least ? v <= best : v >= best);
                best = better ? v : best;
                at = better ? i : at;
                o[base + i * inner] = narrowed<T>(best);
                where[base + i * inner] = at;
            }
        }
    });
}

}  // namespace rl

#define SCAN(NAME, J, T, S)                                                                                       \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *o_, long outer, long count, long inner, int back) {          \
        rl::Call call(#NAME);                                                                                     \
        call.expect(outer > 0 && count > 0 && inner > 0, "at least one element");                                 \
        const T *x = call.in<T>("input", x_, outer, count, inner);                                                \
        T *o = call.out<T>("out", o_, outer, count, inner);                                                       \
        call.run([=] { rl::scans<T>(x, o, outer, count, inner, back, rl::J()); });                                \
    }
#define ALL(T, S)                                                                                                 \
    SCAN(running_sum, Sum, T, S)                                                                                  \
    SCAN(running_product, Product, T, S)                                                                          \
    SCAN(running_log_sum, LogSum, T, S)                                                                           \
    RL_EXPORT void rl_running_extreme_##S(Array *x_, Array *o_, Array *where_, long outer, long count, long inner, \
                                          int least) {                                                            \
        rl::Call call("running_extreme");                                                                         \
        call.expect(outer > 0 && count > 0 && inner > 0, "at least one element");                                 \
        const T *x = call.in<T>("input", x_, outer, count, inner);                                                \
        T *o = call.out<T>("out", o_, outer, count, inner);                                                       \
        int64_t *where = call.out<int64_t>("where", where_, outer, count, inner);                                 \
        call.run([=] { rl::extremes<T>(x, o, where, outer, count, inner, least); });                              \
    }
RL_ALL(ALL)
