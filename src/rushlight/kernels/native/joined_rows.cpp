// Rows joined with others by index: (outer, R, C) at (N) with (outer, N, C).
#include "indices.h"

namespace rl {
namespace {

constexpr long kFew = 16;        // columns for each of which a range of rows is worth going through all indices
constexpr long kSparse = 4;     // as many times fewer rows are few
constexpr long kWideRow = 512;  // columns for each row of which it is worth seeking what is added to it
constexpr long kRoom = 1 << 16;  // numbers that stay in the second-level cache

// f(piece's first row, its last) of R rows, of which each piece owns a range and goes through all of N indices in order, so that no
// two threads meet and the order of every sum is that of the indices.
template <class F> void by_ranges(long pieces, long R, F f) {
    const long rows = ceil_div(R, pieces);
    parallel_for(pieces, 1, [=](long begin, long end) { f(begin * rows, std::min(end * rows, R)); });
}

long ranges(long N, long C) { return N * C < kGrain ? 1 : 2 * threads(); }

template <class T, class F> void join_rows(T *dst, const int64_t *idx, const T *src, long R, long N, long C, F join) {
    by_ranges(ranges(N, C), R, [=](long low, long high) {
        for (long i = 0; i < N; ++i) {
            long r = idx[i];
            if (r < low || r >= high) continue;
            T *to = dst + r * C;
            const T *from = src + i * C;
#pragma omp simd
            for (long j = 0; j < C; ++j) to[j] = join(to[j], from[j]);
        }
    });
}

// The same within each of several: (outer, R, C) at (outer, N, C).
template <class T, class F> void join_slices(T *dst, const int64_t *idx, const T *src, long outer, long R, long N, long C, F join) {
    if (outer == 1) return join_rows(dst, idx, src, R, N, C, join);
    parallel_for(outer, 1 + kGrain / (N * C + 1), [=](long begin, long end) {
        for (long o = begin; o < end; ++o)
            for (long i = 0; i < N; ++i) {
                T *to = dst + (o * R + idx[i]) * C;
                const T *from = src + (o * N + i) * C;
                if (C == 1) *to = join(*to, *from);
                else
#pragma omp simd
                    for (long j = 0; j < C; ++j) to[j] = join(to[j], from[j]);
            }
    });
}

// Numbers of 16 bits: rows [low, high) are float32 meanwhile, with which the rows from(i) are joined by join(i).
template <class U, class From, class Join>
void join_range(U *dst, const int64_t *idx, long low, long high, long N, long C, From from, Join join) {
    if (low >= high) return;
    const Sums sums((high - low) * C);
    widen(dst + low * C, sums.get(), (high - low) * C);
    for (long i = 0; i < N; ++i) {
        const long r = idx[i];
        if (r < low || r >= high) continue;
        fold(from(i), sums.get() + (r - low) * C, C, join(i));
    }
    narrow(sums.get(), dst + low * C, (high - low) * C);
}

// f(slice, first row, last) of all, on all threads; `many`: into how many ranges the rows of one slice are cut.
template <class F> void each_range(long outer, long many, long R, long N, long C, F f) {
    if (outer == 1) return by_ranges(many, R, [=](long low, long high) { f(0, low, high); });
    parallel_for(outer, 1 + kGrain / (N * C + 1), [=](long begin, long end) {
        for (long o = begin; o < end; ++o) f(o, 0, R);
    });
}

// By groups of those that are the same, where most rows are not joined with any.
template <class U, class From, class Join>
void join_groups(U *dst, const int64_t *idx, long outer, long R, long N, long C, From from, Join join) {
    const Sorted at(idx, N, R);
    each_group(idx, at, outer, N, row_grain(C), [=, &at](long o, long row, long first, long last) {
        join_row(dst + (o * R + row) * C, C, first, last, [=, &at](long k) { return from(o, at[k]); },
                 [=, &at](long k) { return join(at[k]); });
    });
}

template <class U, class From, class Join>
void join_halves(U *dst, const int64_t *idx, long outer, long R, long N, long C, From from, Join join) {
    if (C == 0) return;
    if (N < R / kSparse || C >= kWideRow) return join_groups(dst, idx, outer, R, N, C, from, join);
    each_range(outer, std::max(ranges(N, C), std::min(R * C / kRoom, C / kFew)), R, N, C, [=](long o, long low, long high) {
        join_range(dst + o * R * C, idx, low, high, N, C, [=](long i) { return from(o, i); }, join);
    });
}

// Rows (outer, N, C).
template <class U, class F> void join_given(U *dst, const int64_t *idx, const U *src, long outer, long R, long N, long C, F join) {
    if (C == 1 && N >= R / kSparse)
        each_range(outer, ranges(N, 1), R, N, 1, [=](long o, long low, long high) {
            join_singles(dst + o * R, idx, src + o * N, low, high, N, join);
        });
    else
        join_halves(dst, idx, outer, R, N, C, [=](long o, long i) { return src + (o * N + i) * C; }, [=](long) { return join; });
}

template <class U> void join_all(U *dst, const int64_t *idx, const U *src, long outer, long R, long N, long C, long how) {
    joined_by(how, [=](auto join) {
        if constexpr (kPlain<U>) join_slices(dst, idx, src, outer, R, N, C, join);
        else join_given(dst, idx, src, outer, R, N, C, join);
    });
}

// dst[to[i]] += scale[i] * table[of[i]], rows of length C, in the order of i; pieces as there.
template <class T>
void add_plain_of(T *dst, const int64_t *to, const T *table, const int64_t *of, const T *scale, long R, long N, long C) {
    by_ranges(ranges(N, C), R, [=](long low, long high) {
        for (long i = 0; i < N; ++i) {
            if (to[i] < low || to[i] >= high) continue;
            T *row = dst + to[i] * C;
            const T *from = table + of[i] * C;
            const T by = scale ? scale[i] : T(1);
#pragma omp simd
            for (long j = 0; j < C; ++j) row[j] += by * from[j];
        }
    });
}

template <class U>
void add_halves_of(U *dst, const int64_t *to, const U *table, const int64_t *of, const float *scale, long R, long N, long C) {
    const auto from = [=](long, long i) { return table + of[i] * C; };
    const auto join = [=](long i) {
        return [by = scale ? scale[i] : 1.0f](auto a, auto b) { return a + by * b; };
    };
    if (std::is_sorted(to, to + N)) join_groups(dst, to, 1, R, N, C, from, join);
    else join_halves(dst, to, 1, R, N, C, from, join);
}

template <class U>
void add_rows_of(U *dst, const int64_t *to, const U *table, const int64_t *of, const WideOf<U> *scale, long R, long N, long C) {
    if constexpr (kPlain<U>) add_plain_of(dst, to, table, of, scale, R, N, C);
    else add_halves_of(dst, to, table, of, scale, R, N, C);
}

template <class T> void put_rows(T *dst, const int64_t *idx, const T *src, long outer, long R, long N, long C) {
    join_slices(dst, idx, src, outer, R, N, C, [](T, T b) { return b; });
}

// o[:, i] = x[:, idx[i]]
template <class T> void take_rows(const T *x, const int64_t *idx, T *o, long outer, long R, long N, long C) {
    parallel_for(outer * N, row_grain(C), [=](long begin, long end) {
        while (begin < end) {
            const long slice = begin / N, first = begin - slice * N, last = std::min(N, first + end - begin);
            const T *from = x + slice * R * C;
            T *to = o + slice * N * C;
            if (C == 1)
                for (long i = first; i < last; ++i) to[i] = from[idx[i]];
            else
                for (long i = first; i < last; ++i) std::memcpy(to + i * C, from + idx[i] * C, C * sizeof(T));
            begin += last - first;
        }
    });
}

template <class T> long take_all(Call &call, Array *x_, Array *idx_, Array *o_, long outer, long R, long N, long C) {
    const T *x = call.in<T>("input", x_, outer, R, C);
    const int64_t *idx = call.in<int64_t>("index", idx_, N);
    T *o = call.out<T>("out", o_, outer, N, C);
    long outside = -1;
    call.run([&] {
        outside = first_outside(idx, N, R);
        if (outside < 0) take_rows(x, idx, o, outer, R, N, C);
    });
    return outside;
}

template <class T> long put_all(Call &call, Array *dst_, Array *idx_, Array *src_, long outer, long R, long N, long C) {
    T *dst = call.out<T>("destination", dst_, outer, R, C);
    const int64_t *idx = call.in<int64_t>("index", idx_, N);
    const T *src = call.in<T>("source", src_, outer, N, C);
    long outside = -1;
    call.run([&] {
        outside = first_outside(idx, N, R);
        if (outside < 0) put_rows(dst, idx, src, outer, R, N, C);
    });
    return outside;
}

}  // namespace
}  // namespace rl

#define ALL(U, S)                                                                                              \
    RL_EXPORT long rl_index_join_rows_##S(Array *dst_, Array *idx_, Array *src_, long outer, long R, long N,   \
                                          long C, long how) {                                                  \
        rl::Call call("index_join_rows");                                                                      \
        U *dst = call.out<U>("destination", dst_, outer, R, C);                                                \
        const int64_t *idx = call.in<int64_t>("index", idx_, N);                                               \
        const U *src = call.in<U>("source", src_, outer, N, C);                                                \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = rl::first_outside(idx, N, R);                                                 \
            if (outside < 0) rl::join_all<U>(dst, idx, src, outer, R, N, C, how);                              \
        });                                                                                                    \
        return outside;                                                                                        \
    }                                                                                                          \
    RL_EXPORT long rl_add_rows_of_##S(Array *dst_, Array *to_, Array *table_, Array *of_, Array *scale_, long R, long V, \
                                      long N, long C) {                                                        \
        rl::Call call("add_rows_of");                                                                          \
        using T = rl::WideOf<U>;                                                                               \
        U *dst = call.out<U>("destination", dst_, R, C);                                                       \
        const U *table = call.in<U>("table", table_, V, C);                                                    \
        const T *scale = call.maybe_in<T>("factors", scale_, N);                                               \
        const int64_t *to = call.in<int64_t>("where to", to_, N), *of = call.in<int64_t>("rows", of_, N);      \
        long outside = -1;                                                                                     \
        call.run([&] {                                                                                         \
            outside = rl::first_outside(of, N, V);                                                  \
            if (outside < 0 && rl::first_outside(to, N, R) < 0)                                     \
                rl::add_rows_of<U>(dst, to, table, of, scale, R, N, C);                                        \
        });                                                                                                    \
        return outside;                                                                                        \
    }
RL_ALL(ALL)

// Of unsigned numbers as wide as the elements: dst[idx[i]] = src[i], the last of repeats; and dst[i] = src[idx[i]], where src comes first.
#define MOVES(NAME, FUNCTION)                                                                                  \
    RL_EXPORT long rl_##NAME##_bytes(Array *first, Array *idx, Array *second, long outer, long R, long N, long C) { \
        rl::Call call(#NAME);                                                                                  \
        if (!call.is_array("elements", first)) return -1;                                                      \
        switch (first->descr->itemsize) {                                                                      \
            case 1: return rl::FUNCTION<uint8_t>(call, first, idx, second, outer, R, N, C);                    \
            case 2: return rl::FUNCTION<uint16_t>(call, first, idx, second, outer, R, N, C);                   \
            case 4: return rl::FUNCTION<uint32_t>(call, first, idx, second, outer, R, N, C);                   \
            default: return rl::FUNCTION<uint64_t>(call, first, idx, second, outer, R, N, C);                  \
        }                                                                                                      \
    }
MOVES(put_rows, put_all)
MOVES(take_rows, take_all)
