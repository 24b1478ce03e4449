// Softmax, its logarithm and their gradients over the middle axis of (outer, count, inner).
//
// Rows (inner == 1) are worked one by one while they lie in cache.  Otherwise tiles of neighbouring columns
// go down the axis together, so that memory is read along lines.
#include <array>

#include "memory.h"
#include "reduce.h"
#include "turned.h"

namespace rl {

// U: what numbers are in memory, of 16 bits perhaps; T: what is computed with.
constexpr long kPiece = 1024;  // numbers of 16 bits that are in float32 at a time

template <class U> struct Row {  // of numbers to be read in pieces, plain ones in one
    static constexpr long kLong = kPlain<U> ? std::numeric_limits<long>::max() : kPiece;
};

template <class T> static void softmax_row(const T *x, T *o, long n) {
    const T scale = T(1) / exp_each(x, o, n, row_max(x, n));
#pragma omp simd
    for (long i = 0; i < n; ++i) o[i] *= scale;
}

template <class U, class T = WideOf<U>> static void log_softmax_row(const U *x, U *o, T *, long n) {
    T m = -infinity<T>(), s = 0;
    pieces<Row<U>::kLong>(x, n, [&](long, const T *v, long some) {
        const T found = row_max(v, some);
        m = found > m ? found : m;
    });
    pieces<Row<U>::kLong>(x, n, [&](long, const T *v, long some) { s += exp_sum(v, some, m); });
    const T most = m, l = rl::log(s);
    turn(x, o, n, [=](long, T v) { return v - most - l; });
}

template <class U, class T = WideOf<U>> static void softmax_backward_row(const U *g, const U *y, U *o, long n) {
    T s = 0;
    pieces2<Row<U>::kLong>(g, y, n, [&](long, const T *d, const T *v, long some) {
        T part = 0;
#pragma omp simd reduction(+ : part)
        for (long i = 0; i < some; ++i) part += d[i] * v[i];
        s += part;
    });
    turn2(g, y, o, n, [=](long, T d, T v) { return (d - s) * v; });
}

template <class U, class T = WideOf<U>> static void log_softmax_backward_row(const U *g, const U *y, U *o, long n) {
    T s = 0;
    pieces<Row<U>::kLong>(g, n, [&](long, const T *d, long some) {
        T part = 0;
#pragma omp simd reduction(+ : part)
        for (long i = 0; i < some; ++i) part += d[i];
        s += part;
    });
    turn2(g, y, o, n, [=](long, T d, T v) { return d - rl::exp(v) * s; });
}

// room: for exponentials of 16-bit numbers, (n, w); those of others are where the result will be.
template <class U, class T = WideOf<U>> static void softmax_tile(const U *x, U *o, T *room, long n, long inner, long w) {
    T m[kTile], s[kTile];
    if constexpr (kPlain<U>) {
        tile_sums<U, true>(x, o, n, inner, inner, w, m, s);
        for (long j = 0; j < w; ++j) s[j] = T(1) / s[j];
        for (long i = 0; i < n; ++i)
#pragma omp simd
            for (long j = 0; j < w; ++j) o[i * inner + j] *= s[j];
    } else {
        tile_sums<U, true>(x, room, n, inner, w, w, m, s);
        for (long j = 0; j < w; ++j) s[j] = T(1) / s[j];
        for (long i = 0; i < n; ++i) {
            T *row = room + i * w;
#pragma omp simd
            for (long j = 0; j < w; ++j) row[j] *= s[j];
            narrow(row, o + i * inner, w);
        }
    }
}

template <class U, class T = WideOf<U>> static void softmax_row(const U *x, U *o, T *room, long n) {
    if constexpr (kPlain<U>) {
        softmax_row(x, o, n);
    } else {
        widen(x, room, n);
        softmax_row<T>(room, room, n);
        narrow(room, o, n);
    }
}

template <class U, class T = WideOf<U>> static void log_softmax_tile(const U *x, U *o, T *, long n, long inner, long w) {
    T m[kTile], s[kTile];
    tile_sums<U, false>(x, (T *)nullptr, n, inner, 0, w, m, s);
    for (long j = 0; j < w; ++j) s[j] = rl::log(s[j]);
    const T *most = m, *l = s;
    for (long i = 0; i < n; ++i)
        turn(x + i * inner, o + i * inner, w, [=](long j, T v) { return v - most[j] - l[j]; });
}

template <class U, bool kLog, class T = WideOf<U>>
static void backward_tile(const U *g, const U *y, U *o, long n, long inner, long w) {
    Part<U, kTile> wide_g, wide_y;
    T s[kTile];
    for (long j = 0; j < w; ++j) s[j] = 0;
    for (long i = 0; i < n; ++i) {
        const T *d = wide_g(g + i * inner, w), *v = kLog ? nullptr : wide_y(y + i * inner, w);
#pragma omp simd
        for (long j = 0; j < w; ++j) s[j] += kLog ? d[j] : d[j] * v[j];
    }
    const T *sums = s;
    for (long i = 0; i < n; ++i)
        turn2(g + i * inner, y + i * inner, o + i * inner, w,
              [=](long j, T d, T v) { return kLog ? d - rl::exp(v) * sums[j] : (d - sums[j]) * v; });
}

// Some rows of a few elements as columns: the inputs turned, `tile` run on them, its results turned back.
template <class U, size_t K, class Tile> static void by_columns(const std::array<const U *, K> &in, U *o, long n, long w, Tile tile) {
    U room[K + 1][kTile * kFew];
    std::array<const U *, K> turned;
    for (size_t k = 0; k < K; ++k) put_as_columns(in[k], room[k], w, n), turned[k] = room[k];
    tile(turned, room[K], filled(w), filled(w));
    put_as_rows(room[K], o, w, n);
}

template <class U, size_t K> RL_INLINE std::array<const U *, K> behind(const std::array<const U *, K> &in, long at) {
    std::array<const U *, K> found;
    for (size_t k = 0; k < K; ++k) found[k] = in[k] + at;
    return found;
}

// Runs `row(in, out, room)` for every row, or `tile(in, out, inner, width, room)` for every tile of columns, as which rows of up to
// `few` elements go, too; room: for the numbers of either in T, if it is asked for.
template <class T, class U, size_t K, class Row, class Tile>
static void sweep(std::array<const U *, K> in, U *o, long outer, long n, long inner, long few, bool rooms, Row row, Tile tile) {
    if (n == 0 || inner == 0) return;
    if (inner == 1 && n <= few) {
        const long tiles = ceil_div(outer, kTile);
        return parallel_for(tiles, row_grain(n * kTile), [=](long begin, long end) {
            Scratch<T> room(rooms ? n * kTile : 0, false);
            for (long i = begin; i < end; ++i)
                by_columns(behind(in, i * kTile * n), o + i * kTile * n, n, std::min(kTile, outer - i * kTile),
                           [&](const auto &turned, U *to, long pitch, long w) { tile(turned, to, pitch, w, room.get()); });
        });
    }
    if (inner == 1) {
        parallel_for(outer, row_grain(n), [=](long begin, long end) {
            Scratch<T> room(rooms ? n : 0, false);
            for (long i = begin; i < end; ++i) row(behind(in, i * n), o + i * n, room.get());
        });
        return;
    }
    const long tiles = (inner + kTile - 1) / kTile, widest = inner < kTile ? inner : kTile;
    parallel_for(outer * tiles, row_grain(n * widest), [=](long begin, long end) {
        Scratch<T> room(rooms ? n * widest : 0, false);
        for (long i = begin; i < end; ++i) {
            const long first = i % tiles * kTile, at = i / tiles * n * inner + first;
            tile(behind(in, at), o + at, inner, std::min(kTile, inner - first), room.get());
        }
    });
}

}  // namespace rl

#define FORWARD(NAME, FEW, ROOM, U, S)                                                        \
    RL_EXPORT void rl_##NAME##_##S(Array *x_, Array *o_, long outer, long n, long inner) {    \
        rl::Call call(#NAME);                                                                 \
        using T = rl::WideOf<U>;                                                              \
        const U *x = call.in<U>("input", x_, outer, n, inner);                                \
        U *o = call.out<U>("out", o_, outer, n, inner);                                       \
        call.run([=] {                                                                        \
            rl::sweep<T>(                                                                     \
                std::array<const U *, 1>{x}, o, outer, n, inner, FEW, ROOM && !rl::kPlain<U>, \
                [=](const auto &in, U *to, T *room) { rl::NAME##_row(in[0], to, room, n); },  \
                [=](const auto &in, U *to, long pitch, long w, T *room) { rl::NAME##_tile(in[0], to, room, n, pitch, w); }); \
        });                                                                                   \
    }
#define BACKWARD(NAME, FEW, LOG, U, S)                                                                \
    RL_EXPORT void rl_##NAME##_##S(Array *g_, Array *y_, Array *o_, long outer, long n, long inner) { \
        rl::Call call(#NAME);                                                                         \
        using T = rl::WideOf<U>;                                                                      \
        const U *g = call.in<U>("gradient", g_, outer, n, inner);                                     \
        const U *y = call.in<U>("output", y_, outer, n, inner);                                       \
        U *o = call.out<U>("out", o_, outer, n, inner);                                               \
        call.run([=] {                                                                                \
            rl::sweep<T>(                                                                             \
                std::array<const U *, 2>{g, y}, o, outer, n, inner, FEW, false,                       \
                [=](const auto &in, U *to, T *) { rl::NAME##_row(in[0], in[1], to, n); },             \
                [=](const auto &in, U *to, long pitch, long w, T *) { rl::backward_tile<U, LOG>(in[0], in[1], to, n, pitch, w); }); \
        });                                                                                           \
    }
#define ALL(U, S)                               \
    FORWARD(softmax, 23, true, U, S)            \
    FORWARD(log_softmax, rl::kFew, false, U, S) \
    BACKWARD(softmax_backward, 15, false, U, S) \
    BACKWARD(log_softmax_backward, 15, true, U, S)
RL_ALL(ALL)
