// Logarithms of sums of exponentials over one dimension: (outer, count, inner) -> (outer, inner).  Long sums go on in double; the
// order of each is fixed by the sizes alone.
#include "reduce.h"
#include "row_sums.h"
#include "turned.h"

namespace rl {
namespace {

// What exponentials are taken above: the largest element, if it is a number.
template <class T> RL_INLINE T base_of(T m) { return m == infinity<T>() || m == -infinity<T>() ? T(0) : m; }

template <class U, class T = WideOf<U>> T log_sum_of_row(const U *x, long n) {
    T m = -infinity<T>();
    pieces<kRun>(x, n, [&](long, const T *v, long some) {
        const T found = row_max(v, some);
        m = found > m ? found : m;
    });
    const T base = base_of(m);
    double total = 0;
    pieces<kRun>(x, n, [&](long, const T *v, long some) { total += exp_sum(v, some, base); });
    return rl::log((T)total) + base;
}

// Columns beside each other go down the rows together.
template <class U, class T = WideOf<U>> void log_sums_of_columns(const U *x, T *out, long n, long inner, long w) {
    Part<U, kUnit> part;
    T m[kUnit], run[kUnit];
    double total[kUnit] = {};
    for (long j = 0; j < w; ++j) m[j] = -infinity<T>();
    for (long i = 0; i < n; ++i) {
        const T *row = part(x + i * inner, w);
#pragma omp simd
        for (long j = 0; j < w; ++j) m[j] = row[j] > m[j] ? row[j] : m[j];
    }
    for (long j = 0; j < w; ++j) m[j] = base_of(m[j]);
    for (long top = 0; top < n; top += kRows) {
        const long last = std::min(top + kRows, n);
        for (long j = 0; j < w; ++j) run[j] = 0;
        for (long i = top; i < last; ++i) {
            const T *row = part(x + i * inner, w);
#pragma omp simd
            for (long j = 0; j < w; ++j) run[j] += rl::exp(row[j] - m[j]);
        }
        for (long j = 0; j < w; ++j) total[j] += run[j];
    }
    for (long j = 0; j < w; ++j) out[j] = rl::log((T)total[j]) + m[j];
}

template <class U, class T = WideOf<U>> void log_sums(const U *x, T *out, long outer, long n, long inner) {
    if (inner == 1 && n <= kFew)
        return parallel_for(ceil_div(outer, kUnit), row_grain(4 * n * kUnit), [=](long begin, long end) {
            U room[kUnit * kFew];
            T found[kUnit];
            for (long i = begin; i < end; ++i) {
                const long w = std::min(kUnit, outer - i * kUnit);
                put_as_columns(x + i * kUnit * n, room, w, n);
                log_sums_of_columns(room, found, n, filled(w), filled(w));
                std::copy_n(found, w, out + i * kUnit);
            }
        });
    if (inner == 1)
        return parallel_for(outer, row_grain(4 * n), [=](long begin, long end) {
            for (long r = begin; r < end; ++r) out[r] = log_sum_of_row(x + r * n, n);
        });
    const long units = ceil_div(inner, kUnit);
    parallel_for(outer * units, row_grain(4 * n * std::min(inner, kUnit)), [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kUnit;
            log_sums_of_columns(x + i / units * n * inner + first, out + i / units * inner + first, n, inner, std::min(kUnit, inner - first));
        }
    });
}

}  // namespace
}  // namespace rl

// Of 16 bits the logarithms are in float32.
#define ALL(U, S)                                                                                              \
    RL_EXPORT void rl_log_sum_##S(Array *x_, Array *out_, long outer, long count, long inner) {                \
        rl::Call call("log_sum");                                                                              \
        call.expect(outer > 0 && count > 0 && inner > 0, "at least one element");                              \
        const U *x = call.in<U>("input", x_, outer, count, inner);                                             \
        auto *out = call.out<rl::WideOf<U>>("out", out_, outer, inner);                                        \
        call.run([=] { rl::log_sums(x, out, outer, count, inner); });                                          \
    }
RL_ALL(ALL)
