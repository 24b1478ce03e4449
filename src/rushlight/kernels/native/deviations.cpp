// Squares of the distances from the mean, added up over one dimension: (outer, count, inner) -> (outer, inner).  What is left of the
// mean's own rounding is taken off: the corrected two-pass algorithm (Chan, Golub and LeVeque, "Algorithms for computing the sample
// variance", 1983), about a mean that is made anew by the distances from it, so that those of a constant are 0.
#include <algorithm>
#include <memory>

#include "row_sums.h"

namespace rl {
namespace {

template <class T> RL_INLINE T from_mean(double squares, double rest, long n) {
    const double found = squares - rest * rest / n;
    return (T)(found < 0 ? 0 : found);  // NaN stays NaN
}

// f(v) added up over a row by all threads, the order fixed by its length.
template <class U, class F> double long_row_sum(const U *x, long count, double *part, F f) {
    const long pieces = ceil_div(count, kPiece);
    parallel_for(pieces, 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) part[i] = row_sum(x + i * kPiece, std::min(kPiece, count - i * kPiece), f);
    });
    double total = 0;
    for (long i = 0; i < pieces; ++i) total += part[i];
    return total;
}

// sum(f): f added up over a row.
template <class T, class S> RL_INLINE T of_row(long n, S sum) {
    T mean = (T)(sum([](auto v) { return v; }) / n);
    mean = (T)(mean + sum([=](auto v) { return v - mean; }) / n);
    const double rest = sum([=](auto v) { return v - mean; }), squares = sum([=](auto v) { return (v - mean) * (v - mean); });
    return from_mean<T>(squares, rest, n);
}

template <class U, class T = WideOf<U>> void of_rows(const U *x, T *o, long outer, long count) {
    if (outer == 1 && count > kPiece) {
        std::unique_ptr<double[]> room(new double[ceil_div(count, kPiece)]);
        double *part = room.get();
        o[0] = of_row<T>(count, [=](auto f) { return long_row_sum(x, count, part, f); });
        return;
    }
    parallel_for(outer, row_grain(4 * count), [=](long begin, long end) {
        if (!kPlain<U> && count <= kRun) {  // which are converted once
            Part<U, kRun> part;
            for (long r = begin; r < end; ++r) {
                const T *row = part(x + r * count, count);
                o[r] = of_row<T>(count, [=](auto f) { return row_sum(row, count, f); });
            }
            return;
        }
        for (long r = begin; r < end; ++r)
            o[r] = of_row<T>(count, [=](auto f) { return row_sum(x + r * count, count, f); });
    });
}

// total[c] += f(x[c], mean[c]) of all rows, kRows at a time in their own precision.
template <class U, class F, class T = WideOf<U>>
void add_from(const U *x, const T *mean, double *total, long count, long inner, long some, F f) {
    Part<U, kUnit> part;
    T run[kUnit];
    std::fill(total, total + some, 0.0);
    for (long top = 0; top < count; top += kRows) {
        std::fill(run, run + some, T(0));
        for (long r = top; r < std::min(top + kRows, count); ++r) {
            const T *v = part(x + r * inner, some);
#pragma omp simd
            for (long c = 0; c < some; ++c) run[c] += f(v[c], mean[c]);
        }
        for (long c = 0; c < some; ++c) total[c] += run[c];
    }
}

template <class U, class T = WideOf<U>> void of_some_columns(const U *x, T *o, long count, long inner, long some) {
    T mean[kUnit] = {};
    double total[kUnit], rest[kUnit];
    for (int twice = 0; twice < 2; ++twice) {
        add_from(x, mean, total, count, inner, some, [](T v, T m) { return v - m; });
        for (long c = 0; c < some; ++c) mean[c] = (T)(mean[c] + total[c] / count);
    }
    add_from(x, mean, rest, count, inner, some, [](T v, T m) { return v - m; });
    add_from(x, mean, total, count, inner, some, [](T v, T m) { return (v - m) * (v - m); });
    for (long c = 0; c < some; ++c) o[c] = from_mean<T>(total[c], rest[c], count);
}

template <class U, class T = WideOf<U>> void of_columns(const U *x, T *o, long outer, long count, long inner) {
    const long units = ceil_div(inner, kUnit);
    parallel_for(outer * units, kGrain / (4 * count * std::min(inner, kUnit)) + 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kUnit, some = std::min(kUnit, inner - first);
            of_some_columns(x + i / units * count * inner + first, o + i / units * inner + first, count, inner, some);
        }
    });
}

}  // namespace
}  // namespace rl

// Of 16 bits the results are in float32.
#define ALL(U, S)                                                                                                  \
    RL_EXPORT void rl_squared_deviations_##S(Array *x_, Array *o_, long outer, long count, long inner) {           \
        rl::Call call("squared_deviations");                                                                       \
        using T = rl::WideOf<U>;                                                                                   \
        call.expect(outer > 0 && count > 0 && inner > 0, "at least one element");                                  \
        const U *x = call.in<U>("input", x_, outer, count, inner);                                                 \
        T *o = call.out<T>("out", o_, outer, inner);                                                               \
        call.run([=] { inner == 1 ? rl::of_rows(x, o, outer, count) : rl::of_columns(x, o, outer, count, inner); }); \
    }
RL_ALL(ALL)
