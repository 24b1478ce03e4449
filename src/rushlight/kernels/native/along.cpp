// Elements read, written and added at indices along one dimension: (outer, size, inner) at (outer, count, inner).
#include "common.h"

namespace rl {

struct Along {
    const int64_t *index;
    long outer, size, count, inner;

    // The first position whose index lies outside; -1 if all are fine.
    long outside() const {
        const long n = outer * count * inner;
        long wrong = 0;
#pragma omp simd reduction(+ : wrong)
        for (long i = 0; i < n; ++i) wrong += (uint64_t)index[i] >= (uint64_t)size;
        for (long i = 0; wrong && i < n; ++i)
            if ((uint64_t)index[i] >= (uint64_t)size) return i;
        return -1;
    }
};

template <class T> static void gather_along(Along a, const T *x, T *o) {
    parallel_for(a.outer * a.count, row_grain(a.inner), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const T *from = x + r / a.count * a.size * a.inner;
            const int64_t *at = a.index + r * a.inner;
#pragma omp simd
            for (long i = 0; i < a.inner; ++i) o[r * a.inner + i] = from[at[i] * a.inner + i];
        }
    });
}

template <class T> static void gather_rows(Along a, const T *x, T *o) {
    parallel_for(a.outer, row_grain(a.count), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const T *from = x + r * a.size;
            const int64_t *at = a.index + r * a.count;
            for (long i = 0; i < a.count; ++i) o[r * a.count + i] = from[at[i]];
        }
    });
}

// Each piece owns some of what is written to, in the order of the indices.
template <class T, class F> static void at_each(Along a, T *x, const T *values, F write) {
    constexpr long kColumns = 256;
    const long units = (a.inner + kColumns - 1) / kColumns;
    parallel_for(a.outer * units, kGrain / (a.count * kColumns + 1) + 1, [=](long begin, long end) {
        for (long u = begin; u < end; ++u) {
            const long first = u % units * kColumns, last = first + kColumns < a.inner ? first + kColumns : a.inner;
            T *to = x + u / units * a.size * a.inner;
            for (long k = 0; k < a.count; ++k) {
                const long row = (u / units * a.count + k) * a.inner;
                for (long i = first; i < last; ++i) write(to[a.index[row + i] * a.inner + i], values[row + i]);
            }
        }
    });
}

// Of rows that lie by themselves, whose elements are not `inner` apart.
template <class T, class F> static void at_each_of_rows(Along a, T *x, const T *values, F write) {
    parallel_for(a.outer, row_grain(a.count), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            T *to = x + r * a.size;
            const int64_t *at = a.index + r * a.count;
            for (long i = 0; i < a.count; ++i) write(to[at[i]], values[r * a.count + i]);
        }
    });
}

// Returns the first position whose index lies outside; nothing is written then.
template <class T, class F> static long write_all(Along a, T *x, const T *values, F write) {
    const long outside = a.outside();
    if (outside >= 0) return outside;
    if (a.inner == 1) at_each_of_rows(a, x, values, write);
    else at_each(a, x, values, write);
    return -1;
}

enum Joined { kProduct = 1, kGreatest = 2, kLeast = 3 };

template <class T> static long join_all(Along a, T *x, const T *values, long how) {
    if (how == kProduct) return write_all(a, x, values, [](T &to, T value) { to *= value; });
    if (how == kGreatest) return write_all(a, x, values, [](T &to, T value) { to = (value > to) | (value != value) ? value : to; });
    return write_all(a, x, values, [](T &to, T value) { to = (value < to) | (value != value) ? value : to; });
}

}  // namespace rl

#define RL_HOW , long how
#define WRITES(NAME, T, S, MORE, EXPR)                                                                         \
    RL_EXPORT long rl_##NAME##_##S(Array *x_, Array *index_, Array *values_, long outer, long size,            \
                                   long count, long inner MORE) {                                              \
        rl::Call call(#NAME);                                                                                  \
        T *x = call.out<T>("destination", x_, outer, size, inner);                                             \
        rl::Along a = {call.in<int64_t>("index", index_, outer, count, inner), outer, size, count, inner};     \
        const T *values = call.in<T>("values", values_, outer, count, inner);                                  \
        long outside = -1;                                                                                     \
        call.run([&] { outside = EXPR; });                                                                     \
        return outside;                                                                                        \
    }
#define ALL(T, S)                                                                                              \
    RL_EXPORT long rl_gather_along_##S(Array *x_, Array *index_, Array *o_, long outer, long size, long count, \
                                       long inner) {                                                           \
        rl::Call call("gather_along");                                                                         \
        const T *x = call.in<T>("input", x_, outer, size, inner);                                              \
        rl::Along a = {call.in<int64_t>("index", index_, outer, count, inner), outer, size, count, inner};     \
        T *o = call.out<T>("out", o_, outer, count, inner);                                                    \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = a.outside();                                                                             \
            if (outside < 0) inner == 1 ? rl::gather_rows<T>(a, x, o) : rl::gather_along<T>(a, x, o);          \
        });                                                                                                    \
        return outside;                                                                                        \
    }                                                                                                          \
    WRITES(add_along, T, S, , rl::write_all(a, x, values, [](T &to, T value) { to += value; }))                \
    WRITES(put_along, T, S, , rl::write_all(a, x, values, [](T &to, T value) { to = value; }))                 \
    WRITES(join_along, T, S, RL_HOW, rl::join_all(a, x, values, how))
RL_BOTH(ALL)
