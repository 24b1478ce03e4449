// Elements read, written and joined at indices along one dimension: (outer, size, inner) at (outer, count, inner).
#include "indices.h"

namespace rl {
namespace {

struct Along {
    const int64_t *index;
    long outer, size, count, inner;

    // The first position whose index lies outside; -1 if all are fine.
    long outside() const { return first_outside(index, outer * count * inner, size); }
};

template <class T> void gather_along(Along a, const T *x, T *o) {
    parallel_for(a.outer * a.count, row_grain(a.inner), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            const T *from = x + r / a.count * a.size * a.inner;
            const int64_t *at = a.index + r * a.inner;
#pragma omp simd
            for (long i = 0; i < a.inner; ++i) o[r * a.inner + i] = from[at[i] * a.inner + i];
        }
    });
}

template <class T> void gather_rows(Along a, const T *x, T *o) {
    parallel_for(a.outer * a.count, kGrain, [=](long begin, long end) {
        while (begin < end) {
            const long row = begin / a.count, last = std::min(end, (row + 1) * a.count);
            const T *from = x + row * a.size;
            for (; begin < last; ++begin) o[begin] = from[a.index[begin]];
        }
    });
}

// f(slice, first column, how many) of pieces of some columns each, which own what is written to.
template <class F> void by_columns(Along a, long columns, F f) {
    const long units = ceil_div(a.inner, columns);
    parallel_for(a.outer * units, kGrain / (a.count * columns + 1) + 1, [=](long begin, long end) {
        for (long u = begin; u < end; ++u) {
            const long first = u % units * columns;
            f(u / units, first, std::min(columns, a.inner - first));
        }
    });
}

// Each piece owns some of what is written to, in the order of the indices.
template <class T, class F> void at_each(Along a, T *x, const T *values, F join) {
    by_columns(a, 256, [=](long o, long first, long some) {
        T *to = x + o * a.size * a.inner;
        for (long k = 0; k < a.count; ++k) {
            const long row = (o * a.count + k) * a.inner;
            for (long i = first; i < first + some; ++i) {
                T &place = to[a.index[row + i] * a.inner + i];
                place = join(place, values[row + i]);
            }
        }
    });
}

// Of rows that lie by themselves, whose elements are not `inner` apart.
template <class T, class F> void at_each_of_rows(Along a, T *x, const T *values, F join) {
    parallel_for(a.outer, row_grain(a.count), [=](long begin, long end) {
        for (long r = begin; r < end; ++r) {
            T *to = x + r * a.size;
            const int64_t *at = a.index + r * a.count;
            for (long i = 0; i < a.count; ++i) to[at[i]] = join(to[at[i]], values[r * a.count + i]);
        }
    });
}

template <class T, class F> void write_all(Along a, T *x, const T *values, F join) {
    if (a.inner == 1) at_each_of_rows(a, x, values, join);
    else at_each(a, x, values, join);
}

// Numbers of 16 bits, of which those that meet are joined in float32: some columns of a slice, all of which are float32 meanwhile.
template <class U, class F> void join_columns(Along a, U *x, const U *values, long o, long first, long some, float *sums, F join) {
    U *to = x + o * a.size * a.inner + first;
    const bool whole = some == a.inner;
    if (whole) widen(to, sums, a.size * some);
    else
        for (long s = 0; s < a.size; ++s) widen(to + s * a.inner, sums + s * some, some);
    float given[kAtOnce];
    const long most = whole ? std::max(1L, kAtOnce / some) : 1;  // rows of values, which are widened together
    for (long top = 0; top < a.count; top += most) {
        const long rows = std::min(most, a.count - top), start = (o * a.count + top) * a.inner + first;
        widen(values + start, given, rows * some);
        for (long k = 0; k < rows; ++k)
            for (long i = 0; i < some; ++i) {
                float &sum = sums[a.index[start + k * a.inner + i] * some + i];
                sum = join(sum, given[k * some + i]);
            }
    }
    if (whole) narrow(sums, to, a.size * some);
    else
        for (long s = 0; s < a.size; ++s) narrow(sums + s * some, to + s * a.inner, some);
}

// The same of few in long columns: those of one place are sought.
template <class U, class F> void join_few(Along a, U *x, const U *values, long o, long i, long *at, F join) {
    const int64_t *index = a.index + o * a.count * a.inner + i;
    const auto where = [=](long k) { return index[k * a.inner]; };
    for (long k = 0; k < a.count; ++k) at[k] = k;
    if (a.count > 1) std::sort(at, at + a.count, [=](long k, long l) { return where(k) != where(l) ? where(k) < where(l) : k < l; });
    for (long k = 0; k < a.count;) {
        U &place = x[(o * a.size + where(at[k])) * a.inner + i];
        float sum = widened(place);
        const long here = where(at[k]);
        for (; k < a.count && where(at[k]) == here; ++k) sum = join(sum, widened(values[(o * a.count + at[k]) * a.inner + i]));
        place = narrowed<U>(sum);
    }
}

constexpr long kRoom = 1 << 16;  // numbers that stay in the second-level cache

template <class U, class F> void join_halves(Along a, U *x, const U *values, F join) {
    if (a.outer * a.count * a.inner == 0) return;
    if (a.count < a.size / 16) {
        parallel_for(a.outer * a.inner, kGrain / (8 * a.count) + 1, [=](long begin, long end) {
            std::unique_ptr<long[]> at(new long[a.count]);
            for (long u = begin; u < end; ++u) join_few(a, x, values, u / a.inner, u % a.inner, at.get(), join);
        });
        return;
    }
    if (a.inner == 1) {
        parallel_for(a.outer, row_grain(a.count), [=](long begin, long end) {
            for (long r = begin; r < end; ++r) join_singles(x + r * a.size, a.index + r * a.count, values + r * a.count, 0, a.size, a.count, join);
        });
        return;
    }
    const long columns = std::min({a.inner, kAtOnce, std::max(16L, kRoom / a.size / 16 * 16)});
    by_columns(a, columns, [=](long o, long first, long some) {
        const Sums sums(a.size * some);
        join_columns(a, x, values, o, first, some, sums.get(), join);
    });
}

template <class U> void join_all(Along a, U *x, const U *values, long how) {
    joined_by(how, [=](auto join) {
        if constexpr (kPlain<U>) write_all(a, x, values, join);
        else join_halves(a, x, values, join);
    });
}

Along along(Call &call, Array *index, long outer, long size, long count, long inner) {
    return {call.in<int64_t>("index", index, outer, count, inner), outer, size, count, inner};
}

template <class T> long gathered(Call &call, Array *x_, Array *index, Array *o_, long outer, long size, long count, long inner) {
    const T *x = call.in<T>("input", x_, outer, size, inner);
    const Along a = along(call, index, outer, size, count, inner);
    T *o = call.out<T>("out", o_, outer, count, inner);
    long outside = -1;
    call.run([&] {
        outside = a.outside();
        if (outside < 0) inner == 1 ? gather_rows<T>(a, x, o) : gather_along<T>(a, x, o);
    });
    return outside;
}

template <class T> long put(Call &call, Array *x_, Array *index, Array *values_, long outer, long size, long count, long inner) {
    T *x = call.out<T>("destination", x_, outer, size, inner);
    const Along a = along(call, index, outer, size, count, inner);
    const T *values = call.in<T>("values", values_, outer, count, inner);
    long outside = -1;
    call.run([&] {
        outside = a.outside();
        if (outside < 0) write_all(a, x, values, [](T, T value) { return value; });
    });
    return outside;
}

}  // namespace
}  // namespace rl

// Of unsigned numbers as wide as the elements, which are moved.
#define MOVES(NAME, FUNCTION)                                                                                  \
    RL_EXPORT long rl_##NAME##_bytes(Array *x, Array *index, Array *y, long outer, long size, long count, long inner) { \
        rl::Call call(#NAME);                                                                                  \
        if (!call.is_array("input", x)) return -1;                                                             \
        switch (x->descr->itemsize) {                                                                          \
            case 1: return rl::FUNCTION<uint8_t>(call, x, index, y, outer, size, count, inner);                \
            case 2: return rl::FUNCTION<uint16_t>(call, x, index, y, outer, size, count, inner);               \
            case 4: return rl::FUNCTION<uint32_t>(call, x, index, y, outer, size, count, inner);               \
            default: return rl::FUNCTION<uint64_t>(call, x, index, y, outer, size, count, inner);              \
        }                                                                                                      \
    }
MOVES(gather_along, gathered)
MOVES(put_along, put)

// Returns the first position whose index lies outside; nothing is written then.
#define ALL(U, S)                                                                                              \
    RL_EXPORT long rl_join_along_##S(Array *x_, Array *index, Array *values_, long outer, long size,           \
                                     long count, long inner, long how) {                                       \
        rl::Call call("join_along");                                                                           \
        U *x = call.out<U>("destination", x_, outer, size, inner);                                             \
        const rl::Along a = rl::along(call, index, outer, size, count, inner);                                 \
        const U *values = call.in<U>("values", values_, outer, count, inner);                                  \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = a.outside();                                                                             \
            if (outside < 0) rl::join_all(a, x, values, how);                                                  \
        });                                                                                                    \
        return outside;                                                                                        \
    }
RL_ALL(ALL)
