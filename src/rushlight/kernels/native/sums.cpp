// Sums over one dimension: (outer, count, inner) -> (outer, inner).  Long sums go on in double; the order of each is fixed by
// the sizes alone, whatever the number of threads.
#include <memory>

#include "row_sums.h"

namespace rl {

constexpr long kShort = 16;  // numbers of a row up to which rows are added up without lanes

// A row of up to kShort numbers, joined by halves.
template <class N, class F> RL_INLINE float short_sum(const float *x, N n, F f) {
    float lane[kShort];
    for (long k = 0; k < n; ++k) lane[k] = 0 + f(x[k]);
    for (long width = kShort / 2; width > 0; width /= 2)
        for (long k = 0; k < width && k + width < n; ++k) lane[k] += lane[k + width];
    return lane[0];
}

// Rows of 16 bits, many of them in float32 at a time.  N: a length that the compiler knows, or any.
template <class U, class N, class F> static void sum_short_rows(const U *x, float *sum, long outer, N count, F f) {
    parallel_for(outer, row_grain(count), [=](long begin, long end) {
        alignas(64) float wide[1024];
        const long some = 1024 / count;
        for (long r = begin; r < end; r += some) {
            const long rows = std::min(some, end - r);
            widen(x + r * count, wide, rows * count);
            for (long i = 0; i < rows; ++i) sum[r + i] = short_sum(wide + i * count, count, f);
        }
    });
}

template <class U, class F> static void sum_short(const U *x, float *sum, long outer, long count, F f) {
    if (count == 2) sum_short_rows(x, sum, outer, std::integral_constant<long, 2>(), f);
    else if (count == 3) sum_short_rows(x, sum, outer, std::integral_constant<long, 3>(), f);
    else if (count == 4) sum_short_rows(x, sum, outer, std::integral_constant<long, 4>(), f);
    else if (count == 8) sum_short_rows(x, sum, outer, std::integral_constant<long, 8>(), f);
    else sum_short_rows(x, sum, outer, count, f);
}

template <class U, class F, class T = WideOf<U>> static void sum_rows(const U *x, T *sum, long outer, long count, F f) {
    const long pieces = (count + kPiece - 1) / kPiece;
    if constexpr (!kPlain<U>)
        if (count <= kShort) return sum_short(x, sum, outer, count, f);
    if (pieces <= 1) {
        parallel_for(outer, row_grain(count), [=](long begin, long end) {
            for (long r = begin; r < end; ++r) sum[r] = (T)row_sum(x + r * count, count, f);
        });
        return;
    }
    std::unique_ptr<double[]> parts(new double[outer * pieces]);
    double *part = parts.get();
    parallel_for(outer * pieces, 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long row = i / pieces, at = i % pieces * kPiece;
            part[i] = row_sum(x + row * count + at, count - at < kPiece ? count - at : kPiece, f);
        }
    });
    for (long r = 0; r < outer; ++r) {
        double total = 0;
        for (long i = 0; i < pieces; ++i) total += part[r * pieces + i];
        sum[r] = (T)total;
    }
}

// f of `rows` of a few columns, which lie without gaps, by column: kTogether rows go together, each of them a lane of its own.
constexpr long kFewColumns = 16, kTogether = 16;
template <class T, class F> static void sum_together(const T *x, T *run, long rows, long inner, F f) {
    T lane[kFewColumns * kTogether];
    const long width = inner * kTogether, whole = rows / kTogether, rest = rows % kTogether * inner;
    std::fill_n(lane, width, T(0));
    for (long i = 0; i < whole; ++i, x += width)
#pragma omp simd
        for (long c = 0; c < width; ++c) lane[c] += f(x[c]);
    for (long c = 0; c < rest; ++c) lane[c] += f(x[c]);
    for (long half = width / 2; half >= inner; half /= 2)
        for (long c = 0; c < half; ++c) lane[c] += lane[half + c];
    std::copy_n(lane, inner, run);
}

// total += f of rows [top, end) of `some` columns, kRows at a time in their own precision.
template <class U, class F, class T = WideOf<U>>
static void add_columns(const U *block, double *total, long top, long end, long inner, long some, F f) {
    T run[kUnit];
    for (; top < end; top += kRows) {
        if constexpr (kPlain<U>)
            if (inner == some && inner <= kFewColumns) {
                sum_together(block + top * inner, run, std::min(kRows, end - top), inner, f);
                for (long c = 0; c < some; ++c) total[c] += run[c];
                continue;
            }
        for (long c = 0; c < some; ++c) run[c] = 0;
        join_all_rows(block + top * inner, std::min(kRows, end - top), inner, run, some, [=](auto a, auto v) { return a + f(v); });
        for (long c = 0; c < some; ++c) total[c] += run[c];
    }
}

// Each piece owns some columns, so that the order of every sum is that of the rows.
template <class U, class F, class T = WideOf<U>> static void sum_columns(const U *x, T *sum, long outer, long count, long inner, F f) {
    const long units = ceil_div(inner, kUnit);
    parallel_for(outer * units, kGrain / (count * kUnit) + 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kUnit, some = std::min(kUnit, inner - first);
            double total[kUnit] = {};
            add_columns(x + i / units * count * inner + first, total, 0, count, inner, some, f);
            for (long c = 0; c < some; ++c) sum[i / units * inner + first + c] = (T)total[c];
        }
    });
}

// Of few columns and many rows these are cut, too.
template <class U, class F, class T = WideOf<U>> static void sum_few_columns(const U *x, T *sum, long count, long inner, F f) {
    const long cuts = ceil_div(count, kRows);
    std::unique_ptr<double[]> room(new double[cuts * inner]());
    double *totals = room.get();
    parallel_for(cuts, row_grain(kRows * inner), [=](long begin, long end) {
        for (long i = begin; i < end; ++i)
            add_columns(x, totals + i * inner, i * kRows, std::min((i + 1) * kRows, count), inner, inner, f);
    });
    for (long c = 0; c < inner; ++c) {
        double total = 0;
        for (long i = 0; i < cuts; ++i) total += totals[i * inner + c];
        sum[c] = (T)total;
    }
}

template <class U, class F, class T = WideOf<U>> static void sums(const U *x, T *sum, long outer, long count, long inner, F f) {
    if (inner == 1) sum_rows(x, sum, outer, count, f);
    else if (outer == 1 && inner <= kUnit) sum_few_columns(x, sum, count, inner, f);
    else sum_columns(x, sum, outer, count, inner, f);
}

}  // namespace rl

// Of 16 bits the results are in float32.
#define SUM(NAME, EXPR, U, S)                                                                              \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *sum_, long outer, long count, long inner) {           \
        rl::Call call(#NAME);                                                                              \
        using T = rl::WideOf<U>;                                                                           \
        call.expect(outer > 0 && count > 0 && inner > 0, "at least one element");                          \
        const U *x = call.in<U>("input", x_, outer, count, inner);                                         \
        T *sum = call.out<T>("sum", sum_, outer, inner);                                                   \
        call.run([=] { rl::sums(x, sum, outer, count, inner, [](auto v) { return EXPR; }); });             \
    }
#define ALL(U, S)                                                                                          \
    SUM(sum, v, U, S)                                                                                      \
    SUM(sum_of_squares, v * v, U, S)                                                                       \
    SUM(sum_of_sizes, (v < 0 ? -v : v), U, S)                                                              \
    SUM(sum_of_known, (v == v ? v : decltype(v){}), U, S)
RL_ALL(ALL)
