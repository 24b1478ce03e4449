// A square of a matrix put down the other way: read by rows, written by rows, a line of cache each.
#pragma once
#include <cstring>
#include <utility>

#include "gemm.h"

namespace rl {
namespace turning {

template <class T, long N> struct Line {
    typedef T type __attribute__((vector_size(N * sizeof(T))));
};

// One of two vectors that exchange blocks of `apart` numbers: what is to be above the diagonal (`high`), or left of it.
template <long apart, bool high, class V, size_t... I> RL_INLINE V exchanged(V a, V b, std::index_sequence<I...>) {
    constexpr long N = sizeof...(I);
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, ((long)I & apart ? (high ? N + (long)I : N + (long)I - apart) : (high ? (long)I + apart : (long)I))...);
#else
    typedef decltype(a < a) Places;
    return __builtin_shuffle(a, b, Places{((long)I & apart ? (high ? N + (long)I : N + (long)I - apart) : (high ? (long)I + apart : (long)I))...});
#endif
}

// v (N, N) turned: in each step, vectors that lie `apart` from each other exchange blocks.
template <long N, long apart, class V> RL_INLINE void turn(V *v) {
#pragma GCC unroll 16
    for (long i = 0; i < N; ++i) {
        if (i & apart) continue;
        const V a = v[i], b = v[i + apart];
        v[i] = exchanged<apart, false>(a, b, std::make_index_sequence<N>());
        v[i + apart] = exchanged<apart, true>(a, b, std::make_index_sequence<N>());
    }
    if constexpr (apart > 1) turn<N, apart / 2>(v);
}

// Sums of two vectors' lanes that lie `apart`: of each the lanes of one half, a's where bit `apart` of the place is 0.
template <long N, long apart, class V> RL_INLINE V merged(V a, V b) {
    constexpr auto places = std::make_index_sequence<N>();
    return exchanged<apart, false>(a, b, places) + exchanged<apart, true>(a, b, places);
}

}  // namespace turning

// to[i * step] += the sum of the lanes of v[i * apart], for 2 or 4 vectors of N
template <long N, int count, class T, class V> RL_INLINE void add_lanes(const V *v, long apart, T *to, long step) {
    using turning::merged;
    V all = merged<N, N / 2>(v[0], v[apart]);
    if constexpr (count == 4) all = merged<N, N / 4>(all, merged<N, N / 2>(v[2 * apart], v[3 * apart]));
    if constexpr (N / count > 1) all = merged<N, 1>(all, all);
    if constexpr (N / count > 2) all = merged<N, 2>(all, all);
    if constexpr (N / count > 4) all = merged<N, 4>(all, all);
    T lanes[N];
    std::memcpy(lanes, &all, sizeof lanes);
    constexpr long place[4] = {0, count == 4 ? 2 : 1, 1, 3};
    for (int i = 0; i < count; ++i) to[i * step] += lanes[place[i] * N / count];
}

// o[j * to + i] = x[i * from + j] for i, j < N
template <class T, long N> RL_INLINE void square(const T *x, long from, T *o, long to) {
    constexpr long kMost = sizeof(T) < 4 ? 16 : N;  // rows that stay in registers while they are turned
    if constexpr (N * sizeof(T) > kBytes || N > kMost) {
        constexpr long H = N / 2;
        square<T, H>(x, from, o, to);
        square<T, H>(x + H, from, o + H * to, to);
        square<T, H>(x + H * from, from, o + H, to);
        square<T, H>(x + H * from + H, from, o + H * to + H, to);
    } else {
        typename turning::Line<T, N>::type v[N];
#pragma GCC unroll 16
        for (long i = 0; i < N; ++i) std::memcpy(&v[i], x + i * from, sizeof v[i]);
        turning::turn<N, N / 2>(v);
#pragma GCC unroll 16
        for (long j = 0; j < N; ++j) std::memcpy(o + j * to, &v[j], sizeof v[j]);
    }
}

}  // namespace rl
