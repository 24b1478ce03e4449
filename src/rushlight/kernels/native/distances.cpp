// Distances of rows in three norms, of all pairs of two matrices or of the rows i < j of one, and their gradients.
// x1 (B, P, M), x2 (B, R, M); distances (B, P, R), or (P (P - 1) / 2) of one matrix, i by i.
#include <algorithm>
#include <cmath>
#include <memory>

#include "gemm.h"

namespace rl {
namespace {

enum Norm { kSizes = 1, kSquares = 2, kMost = 3 };  // sum of sizes, root of the sum of squares, the greatest size

constexpr long kSteps = 128;     // coordinates summed up before sums go to memory
constexpr long kRowsEach = 256;  // rows of the first that meet a panel of the second
constexpr long kSome = 16;       // coordinates whose gradients a thread makes together
constexpr long kAcross = 1024;   // rows of the second that it meets meanwhile

template <class T> struct BitsIn;
template <> struct BitsIn<float> {
    typedef int32_t one;
    typedef int32_t type __attribute__((vector_size(kBytes), may_alias));
};
template <> struct BitsIn<double> {
    typedef int64_t one;
    typedef int64_t type __attribute__((vector_size(kBytes), may_alias));
};

template <class T> struct In {
    typedef typename Vector<T>::type V;
    typedef typename BitsIn<T>::type I;
    typedef typename BitsIn<T>::one One;
    static constexpr One kSign = std::numeric_limits<One>::min();

    static RL_MEMBER V load(const T *x) { return *reinterpret_cast<const V *>(x); }
    static RL_MEMBER void store(T *x, V v) { *reinterpret_cast<V *>(x) = v; }
    static RL_MEMBER V size(V x) { return (V)((I)x & ~(I{} + kSign)); }
    static RL_MEMBER V pick(I mask, V a, V b) { return (V)((mask & (I)a) | (~mask & (I)b)); }
    static RL_MEMBER V signed_as(V x, V sign) { return (V)((I)x ^ ((I)sign & (I{} + kSign))); }
};

struct Pairs {
    long B, P, R, M;
    bool own;
    long count() const { return own ? P * (P - 1) / 2 : P * R; }
    long row(long i) const { return own ? i * (2 * P - i - 1) / 2 - i - 1 : i * R; }  // behind which element j of its distances lies
    long first(long i) const { return own ? i + 1 : 0; }
};

template <int N, class T> RL_INLINE void join(typename In<T>::V &sum, typename In<T>::V d) {
    if (N == kSizes) sum += In<T>::size(d);
    else if (N == kSquares) sum += d * d;
    else {
        const auto size = In<T>::size(d);
        sum = In<T>::pick((size > sum) | (size != size), size, sum);
    }
}

// x (width rows of M) as steps of `wide` numbers, 0 behind the last row.
template <class T> void turn(const T *x, long M, long width, long steps, long wide, T *to) {
    for (long m = 0; m < steps; ++m) std::fill(to + m * wide + width, to + (m + 1) * wide, T(0));
    for (long l = 0; l < width; ++l)
        for (long m = 0; m < steps; ++m) to[m * wide + l] = x[l * M + m];
}

template <class T, int N, int NV> struct Forward {
    static constexpr long W = NV * kLanes<T>;
    typedef In<T> X;

    // Some coordinates of rows [begin, end) of the first and a panel of the second, whose first row is `at`.
    static void panel(const Pairs &p, const T *x1, const T *b, long steps, long at, long width, long begin, long end, T *out, bool fresh,
                      bool last) {
        for (long i = begin; i < end; ++i) {
            typename X::V sum[NV] = {};
            const T *left = x1 + i * p.M;
            for (long m = 0; m < steps; ++m)
#pragma GCC unroll 4
                for (int v = 0; v < NV; ++v) join<N, T>(sum[v], left[m] - X::load(b + m * W + v * kLanes<T>));
            T found[W];
            for (int v = 0; v < NV; ++v) X::store(found + v * kLanes<T>, sum[v]);
            T *to = out + (p.row(i) + at);
            for (long l = std::max(p.first(i) - at, 0L); l < width; ++l) {
                T now = found[l];
                if (!fresh) now = N != kMost ? to[l] + now : (now > to[l]) | (now != now) ? now : to[l];
                to[l] = N == kSquares && last ? std::sqrt(now) : now;
            }
        }
    }

    static void run(const Pairs &p, const T *x1, const T *x2, T *out, long at, long width, long begin, long end) {
        alignas(64) T b[kSteps * W];
        if (p.own) end = std::min(end, at + width - 1);
        for (long low = 0; low < p.M && begin < end; low += kSteps) {
            const long steps = std::min(kSteps, p.M - low);
            turn(x2 + at * p.M + low, p.M, width, steps, W, b);
            panel(p, x1 + low, b, steps, at, width, begin, end, out, low == 0, low + steps == p.M);
        }
    }
};

template <class T, int N> void distances(const Pairs &p, const T *x1, const T *x2, T *out) {
    constexpr long W = 4 * kLanes<T>;
    const long tiles = ceil_div(p.R, W), chunks = ceil_div(p.P, kRowsEach);
    parallel_for(p.B * chunks * tiles, kGrain / (kRowsEach * W * p.M + 1) + 1, [=](long first, long last) {
        for (long u = first; u < last; ++u) {
            const long n = u / (chunks * tiles), begin = u / tiles % chunks * kRowsEach, at = u % tiles * W;
            const T *a = x1 + n * p.P * p.M, *b = x2 + n * p.R * p.M;
            T *o = out + n * p.count();
            const long end = std::min(begin + kRowsEach, p.P), width = std::min(W, p.R - at);
            if (width > kLanes<T>) Forward<T, N, 4>::run(p, a, b, o, at, width, begin, end);
            else Forward<T, N, 1>::run(p, a, b, o, at, width, begin, end);
        }
    });
}

template <class T, int N> struct Backward {
    static constexpr long L = kLanes<T>, W = 4 * L;
    typedef In<T> X;
    typedef typename X::V V;
    typedef typename X::I I;
    alignas(64) T b[kSome * kAcross], of_b[kSome * kAcross];

    // The distance's slope by a difference d, times the gradient; w: that gradient, over the distance of a root.
    static RL_MEMBER V slope(V d, V w, V dist) {
        if (N == kSquares) return d * w;
        if (N == kSizes) return X::pick((d == 0) | (d != d), d * w, X::signed_as(w, d));
        return X::pick((X::size(d) == dist) & (d != 0), X::signed_as(w, d), X::pick(d != d, d, V{}));
    }

    // One row of the first and W of the second, of which [first, width) are looked at.
    template <bool kWhole>
    RL_MEMBER void tile(const T *left, long steps, long at, const T *g, const T *dist, long first, long width, V *of_left) {
        V w[4], far[4];
        I live[4];
        T given[W] = {}, apart[W] = {};
        typename X::One seen[W] = {};
        if (!kWhole)
            for (long l = first; l < width; ++l) given[l] = g[l], apart[l] = dist[l], seen[l] = -1;
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
            w[v] = X::load((kWhole ? g : given) + v * L), far[v] = X::load((kWhole ? dist : apart) + v * L);
            if (!kWhole) std::memcpy(&live[v], seen + v * L, sizeof(I));
            if (N == kSquares) w[v] = X::pick(far[v] == 0, V{}, w[v] / far[v]);
        }
        for (long m = 0; m < steps; ++m) {
            T *to = of_b + m * kAcross + at;
            const T *from = b + m * kAcross + at;
            V sum{};
#pragma GCC unroll 4
            for (int v = 0; v < 4; ++v) {
                V s = slope(left[m] - X::load(from + v * L), w[v], far[v]);
                if (!kWhole) s = (V)((I)s & live[v]);
                X::store(to + v * L, X::load(to + v * L) + s);
                sum += s;
            }
            of_left[m] += sum;
        }
    }

    // Coordinates [low, low + steps) of rows [begin, end) of the first and `width` of the second from `at` on.
    void block(const Pairs &p, const T *x1, const T *x2, const T *g, const T *dist, long low, long steps, long at, long width, long begin,
               long end, T *of_x1, T *of_x2) {
        turn(x2 + at * p.M + low, p.M, width, steps, kAcross, b);
        std::fill(of_b, of_b + steps * kAcross, T(0));
        for (long i = begin; i < end; ++i) {
            V sums[kSome] = {};
            const long start = std::max(p.first(i) - at, 0L), here = p.row(i) + at;
            for (long l = start / W * W; l < width; l += W) {
                const T *left = x1 + i * p.M + low, *gs = g + (here + l), *ds = dist + (here + l);
                if (l >= start && l + W <= width) tile<true>(left, steps, l, gs, ds, 0, W, sums);
                else tile<false>(left, steps, l, gs, ds, std::max(start - l, 0L), std::min(width - l, W), sums);
            }
            for (long m = 0; m < steps; ++m) {
                T total = 0;
                for (long l = 0; l < L; ++l) total += sums[m][l];
                of_x1[i * p.M + low + m] += total;
            }
        }
        for (long l = 0; l < width; ++l)
            for (long m = 0; m < steps; ++m) of_x2[(at + l) * p.M + low + m] -= of_b[m * kAcross + l];
    }
};

// Each piece owns some coordinates, so that the order of every sum is that of the rows.
template <class T, int N>
void slopes(const Pairs &p, const T *g, const T *x1, const T *x2, const T *dist, T *of_x1, T *of_x2) {
    const long groups = ceil_div(p.M, kSome);
    parallel_for(p.B * groups, kGrain / (p.count() * kSome + 1) + 1, [=](long first, long last) {
        std::unique_ptr<Backward<T, N>> work(new Backward<T, N>);
        for (long u = first; u < last; ++u) {
            const long n = u / groups, low = u % groups * kSome, steps = std::min(kSome, p.M - low);
            const long a = n * p.P * p.M, b = n * p.R * p.M, pairs = n * p.count();
            for (long begin = 0; begin < p.P; begin += kRowsEach)
                for (long at = 0; at < p.R; at += kAcross) {
                    const long width = std::min(kAcross, p.R - at), end = std::min(begin + kRowsEach, p.P);
                    work->block(p, x1 + a, x2 + b, g + pairs, dist + pairs, low, steps, at, width, begin,
                                p.own ? std::min(end, at + width - 1) : end, of_x1 + a, of_x2 + b);
                }
        }
    });
}

template <class F> void in_norm(long norm, F f) {
    if (norm == kSizes) f(std::integral_constant<int, kSizes>());
    else if (norm == kSquares) f(std::integral_constant<int, kSquares>());
    else f(std::integral_constant<int, kMost>());
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                           \
    RL_EXPORT void rl_distances_##S(Array *x1_, Array *x2_, Array *o_, long B, long P, long R, long M, long norm, long own) { \
        rl::Call call("distances");                                                                                         \
        const rl::Pairs p{B, P, R, M, own != 0};                                                                            \
        const T *x1 = call.in<T>("first", x1_, B, P, M), *x2 = call.in<T>("second", x2_, B, R, M);                          \
        T *o = call.out<T>("out", o_, B, p.count());                                                                        \
        call.expect(!own || (B == 1 && P == R), "one matrix");                                                              \
        call.run([=] { rl::in_norm(norm, [=](auto n) { rl::distances<T, decltype(n)::value>(p, x1, x2, o); }); });          \
    }                                                                                                                       \
    RL_EXPORT void rl_distances_backward_##S(Array *g_, Array *x1_, Array *x2_, Array *o_, Array *of_x1_, Array *of_x2_, long B, \
                                             long P, long R, long M, long norm, long own) {                                 \
        rl::Call call("distances_backward");                                                                                \
        const rl::Pairs p{B, P, R, M, own != 0};                                                                            \
        const T *g = call.in<T>("gradient", g_, B, p.count()), *o = call.in<T>("distances", o_, B, p.count());              \
        const T *x1 = call.in<T>("first", x1_, B, P, M), *x2 = call.in<T>("second", x2_, B, R, M);                          \
        T *of_x1 = call.out<T>("gradient of first", of_x1_, B, P, M), *of_x2 = call.out<T>("gradient of second", of_x2_, B, R, M); \
        call.expect(!own || (B == 1 && P == R), "one matrix");                                                              \
        call.run([=] {                                                                                                      \
            rl::in_norm(norm, [=](auto n) { rl::slopes<T, decltype(n)::value>(p, g, x1, x2, o, of_x1, of_x2); });           \
        });                                                                                                                 \
    }
RL_BOTH(ALL)
