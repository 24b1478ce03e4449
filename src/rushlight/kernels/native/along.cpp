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
template <class T> static void put_rows(Along a, T *x, const T *values) {
    parallel_for(a.outer, row_grain(a.count), [=](long begin, long end) {
        for (long r = begin; r < end; ++r)
            for (long i = 0; i < a.count; ++i) x[r * a.size + a.index[r * a.count + i]] = values[r * a.count + i];
    });
}

}  // namespace rl

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
    RL_EXPORT long rl_add_along_##S(Array *x_, Array *index_, Array *values_, long outer, long size,           \
                                    long count, long inner) {                                                  \
        rl::Call call("add_along");                                                                            \
        T *x = call.out<T>("destination", x_, outer, size, inner);                                             \
        rl::Along a = {call.in<int64_t>("index", index_, outer, count, inner), outer, size, count, inner};     \
        const T *values = call.in<T>("values", values_, outer, count, inner);                                  \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = a.outside();                                                                             \
            if (outside < 0) rl::at_each(a, x, values, [](T &to, T value) { to += value; });                   \
        });                                                                                                    \
        return outside;                                                                                        \
    }                                                                                                          \
    RL_EXPORT long rl_put_along_##S(Array *x_, Array *index_, Array *values_, long outer, long size,           \
                                    long count, long inner) {                                                  \
        rl::Call call("put_along");                                                                            \
        T *x = call.out<T>("destination", x_, outer, size, inner);                                             \
        rl::Along a = {call.in<int64_t>("index", index_, outer, count, inner), outer, size, count, inner};     \
        const T *values = call.in<T>("values", values_, outer, count, inner);                                  \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = a.outside();                                                                             \
            if (outside < 0 && inner == 1) rl::put_rows(a, x, values);                                         \
            else if (outside < 0) rl::at_each(a, x, values, [](T &to, T value) { to = value; });               \
        });                                                                                                    \
        return outside;                                                                                        \
    }
RL_BOTH(ALL)
