// Sums and products over one dimension: (outer, count, inner) -> (outer, inner).  Long sums go on in double; the order of
// each is fixed by the sizes alone, whatever the number of threads.
#include <memory>

#include "row_sums.h"

namespace rl {

constexpr long kPiece = 1 << 16;  // elements of one row that a thread adds up
constexpr long kUnit = 256;       // columns added up together: long enough to be read ahead, short enough to stay in the cache
constexpr long kRows = 1024;      // rows added up in their own precision

template <class U, class F, class T = WideOf<U>> static void sum_rows(const U *x, T *sum, long outer, long count, F f) {
    const long pieces = (count + kPiece - 1) / kPiece;
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

// Each piece owns some columns, so that the order of every sum is that of the rows.
template <class U, class F, class T = WideOf<U>> static void sum_columns(const U *x, T *sum, long outer, long count, long inner, F f) {
    const long units = (inner + kUnit - 1) / kUnit;
    parallel_for(outer * units, kGrain / (count * kUnit) + 1, [=](long begin, long end) {
        for (long i = begin; i < end; ++i) {
            const long first = i % units * kUnit, some = inner - first < kUnit ? inner - first : kUnit;
            Part<U, kUnit> part;
            const U *block = x + i / units * count * inner + first;
            T run[kUnit];
            double total[kUnit] = {};
            for (long top = 0; top < count; top += kRows) {
                const long last = top + kRows < count ? top + kRows : count;
                for (long c = 0; c < some; ++c) run[c] = 0;
                for (long r = top; r < last; ++r) {
                    const T *from = part(block + r * inner, some);
#pragma omp simd
                    for (long c = 0; c < some; ++c) run[c] += f(from[c]);
                }
                for (long c = 0; c < some; ++c) total[c] += run[c];
            }
            for (long c = 0; c < some; ++c) sum[i / units * inner + first + c] = (T)total[c];
        }
    });
}

template <class U, class F, class T = WideOf<U>> static void sums(const U *x, T *sum, long outer, long count, long inner, F f) {
    if (inner == 1) sum_rows(x, sum, outer, count, f);
    else sum_columns(x, sum, outer, count, inner, f);
}

// Of 16 bits by runs, whose products are joined in their order.
template <class U, class T = WideOf<U>> static T row_product(const U *x, long count) {
    const auto joined = [](const T *v, long n) {
        return row_joined(v, n, T(1), [](auto one) { return one; }, [](auto a, auto b) { return a * b; });
    };
    if constexpr (kPlain<U>) return joined(x, count);
    T product = 1;
    pieces<kRun>(x, count, [&](long, const T *v, long n) { product *= joined(v, n); });
    return product;
}

template <class U, class T = WideOf<U>> static void products(const U *x, T *product, long rows, long count) {
    parallel_for(rows, row_grain(count), [=](long begin, long end) {
        for (long r = begin; r < end; ++r)
            product[r] = row_product(x + r * count, count);
    });
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
    SUM(sum_of_known, (v == v ? v : decltype(v){}), U, S)                                                  \
    RL_EXPORT void rl_row_products_##S(Array *x_, Array *product_, long rows, long count) {                \
        rl::Call call("row_products");                                                                     \
        using T = rl::WideOf<U>;                                                                           \
        const U *x = call.in<U>("input", x_, rows, count);                                                 \
        T *product = call.out<T>("product", product_, rows);                                               \
        call.run([=] { rl::products(x, product, rows, count); });                                          \
    }
RL_ALL(ALL)
