// The k first of each row in descending or ascending order; NaN counts as the largest.
#include "common.h"

namespace rl {

template <class T, bool largest> RL_INLINE bool before(T a, T b) {
    return largest ? (a > b) | ((a != a) & (b == b)) : (a < b) | ((a == a) & (b != b));
}

// The best so far are kept in order; most elements come after the last of them, which a whole block is asked first.
template <class T, bool largest> static void top_of_row(const T *x, T *best, int64_t *where, long n, long k) {
    constexpr long kBlock = 32;
    const auto insert = [=](long i, long place) {
        for (; place > 0 && before<T, largest>(x[i], best[place - 1]); --place) {
            best[place] = best[place - 1];
            where[place] = where[place - 1];
        }
        best[place] = x[i];
        where[place] = i;
    };
    for (long i = 0; i < k; ++i) insert(i, i);
    long i = k;
    for (; i + kBlock <= n; i += kBlock) {
        const T last = best[k - 1];
        int some = 0;
#pragma omp simd reduction(| : some)
        for (int j = 0; j < kBlock; ++j) some |= largest ? !(x[i + j] <= last) : !(x[i + j] >= last);
        for (long j = i; some && j < i + kBlock; ++j)
            if (before<T, largest>(x[j], best[k - 1])) insert(j, k - 1);
    }
    for (; i < n; ++i)
        if (before<T, largest>(x[i], best[k - 1])) insert(i, k - 1);
}

template <class T> static void top_k(const T *x, T *best, int64_t *where, long rows, long n, long k, bool largest) {
    parallel_for(rows, row_grain(n), [=](long begin, long end) {
        for (long r = begin; r < end; ++r)
            if (largest) top_of_row<T, true>(x + r * n, best + r * k, where + r * k, n, k);
            else top_of_row<T, false>(x + r * n, best + r * k, where + r * k, n, k);
    });
}

}  // namespace rl

#define ALL(T, S)                                                                                              \
    RL_EXPORT void rl_top_k_##S(Array *x_, Array *best_, Array *where_, long rows, long n, long k, int largest) { \
        rl::Call call("top_k");                                                                                \
        call.expect(0 < k && k <= n, "at least as many elements as are wanted, and one");                      \
        const T *x = call.in<T>("input", x_, rows, n);                                                         \
        T *best = call.out<T>("values", best_, rows, k);                                                       \
        int64_t *where = call.out<int64_t>("indices", where_, rows, k);                                        \
        call.run([=] { rl::top_k<T>(x, best, where, rows, n, k, largest); });                                  \
    }
RL_BOTH(ALL)
