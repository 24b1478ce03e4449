// Interpolation at points between the elements of images, and its gradients: by the nearest, by lines or by cubics.
// input (N, C, *S), where (D, N, L) positions counted in elements, the first for the first of S; what lies outside counts as 0.
#include <algorithm>
#include <cmath>

#include "common.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace rl {
namespace {

// Elements of a plane at places, 0 where these are negative.  (Compilers do not gather by themselves.)
template <class T> void take(const T *plane, const int32_t *at, long count, T *to) {
    long l = 0;
#if defined(__AVX512F__)
    for (; l + 16 <= count; l += 16) {
        const __m512i places = _mm512_loadu_si512(at + l);
        if constexpr (sizeof(T) == 4) {
            const __mmask16 in = _mm512_cmpge_epi32_mask(places, _mm512_setzero_si512());
            _mm512_storeu_ps(to + l, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, places, plane, 4));
        } else {
            for (int half = 0; half < 2; ++half) {
                const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(at + l + 8 * half));
                const __mmask8 in = (__mmask8)_mm512_cmpge_epi64_mask(_mm512_cvtepi32_epi64(some), _mm512_setzero_si512());
                _mm512_storeu_pd(to + l + 8 * half, _mm512_mask_i32gather_pd(_mm512_setzero_pd(), in, some, plane, 8));
            }
        }
    }
#endif
    for (; l < count; ++l) to[l] = at[l] < 0 ? T(0) : plane[at[l]];
}

constexpr long kPoints = 256;   // looked at together
constexpr long kChannels = 8;   // planes of a gradient that a thread adds to together

enum Padding { kZeros = 0, kBorder = 1, kReflection = 2 };  // of cubics, whose elements are moved inside one by one

struct Grid {
    long N, C, L, S[3], padding, align;
    long plane() const { return S[0] * S[1] * S[2]; }
};

// The place of an element of a dimension, as a number that may be outside.
template <class T> RL_INLINE T moved(T at, T size, long padding, bool align) {
    if (padding == kReflection) {
        const T low = align ? T(0) : T(-0.5), span = align ? size - 1 : size, away = std::fabs(at - low);
        const T turns = std::floor(away / span), rest = away - turns * span;
        at = (turns - 2 * std::floor(turns / 2) == 0 ? rest : span - rest) + low;
        at = span > 0 ? at : T(0);
    }
    at = at > 0 ? at : T(0);  // of NaN too
    return at < size - 1 ? at : size - 1;
}

// The weights of cubics at fractions of the way to the next element, and how they change (Keys, 1981, with -3/4).
template <class T> struct Cubic {
    static constexpr T a = T(-0.75);
    RL_MEMBER static T near(T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
    RL_MEMBER static T far(T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }
    RL_MEMBER static T near_slope(T x) { return (3 * (a + 2) * x - 2 * (a + 3)) * x; }
    RL_MEMBER static T far_slope(T x) { return (3 * a * x - 10 * a) * x + 8 * a; }
};

// The P^D elements around each of some points, P by dimension: digit d of an element's number, in base P, is its place in dimension d.
template <class T, int D, int P> struct Taps {
    static constexpr int K = D == 2 ? P * P : P * P * P;
    int32_t at[K][kPoints];                        // in the plane; -1 outside
    T part[D][P][kPoints], slope[D][P][kPoints];  // their weights by dimension, and how these change

    static constexpr int digit(int k, int d) { return d == 0 ? k % P : d == 1 ? k / P % P : k / (P * P); }

    void find(const Grid &grid, const T *where, long count) {
        const long *size = grid.S + 3 - D;
        int32_t index[D][P][kPoints];
        for (int d = 0; d < D; ++d) {
            weigh(d, where + d * grid.N * grid.L, count);
            for (int p = 0; p < P; ++p) locate(where + d * grid.N * grid.L, p, (T)size[d], grid, count, index[d][p]);
        }
        for (int k = 0; k < K; ++k)
#pragma omp simd
            for (long l = 0; l < count; ++l) {
                int32_t place = 0, in = 0;
                for (int d = 0; d < D; ++d) {
                    const int32_t i = index[d][digit(k, d)][l];
                    in |= i;
                    place = place * (int32_t)size[d] + i;
                }
                at[k][l] = in < 0 ? -1 : place;
            }
    }

    RL_MEMBER static T base(T x) { return P == 1 ? std::nearbyint(x) : std::floor(x); }

    void weigh(int d, const T *x, long count) {
#pragma omp simd
        for (long l = 0; l < count; ++l) {
            const T from = base(x[l]), t = x[l] - from;
            if constexpr (P == 1) {
                part[d][0][l] = 1, slope[d][0][l] = 0;
            } else if constexpr (P == 2) {
                part[d][0][l] = from + 1 - x[l], part[d][1][l] = t;
                slope[d][0][l] = -1, slope[d][1][l] = 1;
            } else {
                using C = Cubic<T>;
                part[d][0][l] = C::far(t + 1), part[d][1][l] = C::near(t), part[d][2][l] = C::near(1 - t), part[d][3][l] = C::far(2 - t);
                slope[d][0][l] = C::far_slope(t + 1), slope[d][1][l] = C::near_slope(t);
                slope[d][2][l] = -C::near_slope(1 - t), slope[d][3][l] = -C::far_slope(2 - t);
            }
        }
    }

    // Where the p-th element lies in a dimension; -1 outside.
    static void locate(const T *x, int p, T size, const Grid &grid, long count, int32_t *to) {
        const T shift = (T)(P == 4 ? p - 1 : p);
        if (P < 4 || grid.padding == kZeros) {
#pragma omp simd
            for (long l = 0; l < count; ++l) {
                const T i = base(x[l]) + shift;
                to[l] = (int32_t)((i >= 0) & (i < size) ? i : T(-1));  // of NaN too
            }
            return;
        }
#pragma omp simd
        for (long l = 0; l < count; ++l) to[l] = (int32_t)moved(base(x[l]) + shift, size, grid.padding, grid.align);
    }

    // Their weights; without a dimension, how they change along it.
    void weights(long count, int without, T (*to)[kPoints]) const {
        for (int k = 0; k < K; ++k) {
            const T *of[D];
            for (int d = 0; d < D; ++d) of[d] = d == without ? slope[d][digit(k, d)] : part[d][digit(k, d)];
#pragma omp simd
            for (long l = 0; l < count; ++l) {
                T w = of[0][l];
                for (int d = 1; d < D; ++d) w *= of[d][l];
                to[k][l] = w;
            }
        }
    }
};

template <class T, int D, int P> struct Sampled {
    static constexpr int K = Taps<T, D, P>::K;
    const Grid grid;
    const T *x, *where;

    // Points in chunks, each of one image.
    template <class F> void chunks(F body) const {
        const long each = ceil_div(grid.L, kPoints);
        parallel_for(grid.N * each, 1 + kGrain / (kPoints * grid.C + 1), [&](long begin, long end) {
            Taps<T, D, P> taps;
            for (long i = begin; i < end; ++i) {
                const long n = i / each, first = i % each * kPoints, count = std::min(kPoints, grid.L - first);
                taps.find(grid, where + n * grid.L + first, count);
                body(taps, n, first, count);
            }
        });
    }

    void values(T *o) const {
        chunks([&](const Taps<T, D, P> &taps, long n, long first, long count) {
            T weight[K][kPoints], taken[kPoints];
            taps.weights(count, -1, weight);
            for (long c = 0; c < grid.C; ++c) {
                const T *plane = x + (n * grid.C + c) * grid.plane();
                T *to = o + (n * grid.C + c) * grid.L + first;
                take(plane, taps.at[0], count, to);
                if (P == 1) continue;
#pragma omp simd
                for (long l = 0; l < count; ++l) to[l] *= weight[0][l];
                for (int k = 1; k < K; ++k) {
                    take(plane, taps.at[k], count, taken);
#pragma omp simd
                    for (long l = 0; l < count; ++l) to[l] += taken[l] * weight[k][l];
                }
            }
        });
    }

    void of_points(const T *g, T *o) const {
        chunks([&](const Taps<T, D, P> &taps, long n, long first, long count) {
            T change[D][K][kPoints], sums[D][kPoints], taken[kPoints];
            for (int d = 0; d < D; ++d) {
                taps.weights(count, d, change[d]);
                std::fill_n(sums[d], count, T(0));
            }
            for (long c = 0; c < grid.C; ++c) {
                const T *plane = x + (n * grid.C + c) * grid.plane(), *from = g + (n * grid.C + c) * grid.L + first;
                for (int k = 0; k < K; ++k) {
                    take(plane, taps.at[k], count, taken);
                    for (int d = 0; d < D; ++d)
#pragma omp simd
                        for (long l = 0; l < count; ++l) sums[d][l] += taken[l] * from[l] * change[d][k][l];
                }
            }
            for (int d = 0; d < D; ++d) std::copy_n(sums[d], count, o + (d * grid.N + n) * grid.L + first);
        });
    }

    void of_input(const T *g, T *o) const {
        const long groups = ceil_div(grid.C, kChannels);
        parallel_for(grid.N * groups, 1, [&](long begin, long end) {
            Taps<T, D, P> taps;
            T weight[K][kPoints];
            for (long i = begin; i < end; ++i) {
                const long n = i / groups, low = i % groups * kChannels, high = std::min(low + kChannels, grid.C);
                std::fill(o + (n * grid.C + low) * grid.plane(), o + (n * grid.C + high) * grid.plane(), T(0));
                for (long first = 0; first < grid.L; first += kPoints) {
                    const long count = std::min(kPoints, grid.L - first);
                    taps.find(grid, where + n * grid.L + first, count);
                    taps.weights(count, -1, weight);
                    for (long c = low; c < high; ++c)
                        add(taps, weight, g + (n * grid.C + c) * grid.L + first, count, o + (n * grid.C + c) * grid.plane());
                }
            }
        });
    }

    static void add(const Taps<T, D, P> &taps, const T (*weight)[kPoints], const T *g, long count, T *plane) {
        for (int k = 0; k < K; ++k)
            for (long l = 0; l < count; ++l)
                if (taps.at[k][l] >= 0) plane[taps.at[k][l]] += g[l] * weight[k][l];
    }
};

template <class T, class F> void sampled(Call &call, const Grid &grid, const T *x, const T *where, long dimensions, long by, F body) {
    call.expect(dimensions == 3 ? by < 4 : dimensions == 2, "two dimensions, or three without cubics");
    call.run([&] {
        if (by == 4) body(Sampled<T, 2, 4>{grid, x, where});
        else if (by == 2 && dimensions == 2) body(Sampled<T, 2, 2>{grid, x, where});
        else if (by == 2) body(Sampled<T, 3, 2>{grid, x, where});
        else if (dimensions == 2) body(Sampled<T, 2, 1>{grid, x, where});
        else body(Sampled<T, 3, 1>{grid, x, where});
    });
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                                        \
    RL_EXPORT void rl_grid_sample_##S(Array *x_, Array *where_, Array *o_, long N, long C, long L, long D, long s0, long s1, long s2,    \
                                      long by, long padding, long align) {                                                               \
        rl::Call call("grid_sample");                                                                                                    \
        const rl::Grid grid{N, C, L, {s0, s1, s2}, padding, align};                                                                      \
        const T *x = call.in<T>("input", x_, N, C, grid.plane()), *where = call.in<T>("positions", where_, D, N, L);                     \
        T *o = call.out<T>("out", o_, N, C, L);                                                                                          \
        rl::sampled(call, grid, x, where, D, by, [=](const auto &at) { at.values(o); });                                                 \
    }                                                                                                                                    \
    RL_EXPORT void rl_grid_sample_backward_##S(Array *g_, Array *x_, Array *where_, Array *of_x_, Array *of_where_, long N, long C,      \
                                               long L, long D, long s0, long s1, long s2, long by, long padding, long align) {           \
        rl::Call call("grid_sample_backward");                                                                                           \
        const rl::Grid grid{N, C, L, {s0, s1, s2}, padding, align};                                                                      \
        const T *g = call.in<T>("gradient", g_, N, C, L), *x = call.maybe_in<T>("input", x_, N, C, grid.plane());                        \
        const T *where = call.in<T>("positions", where_, D, N, L);                                                                       \
        T *of_x = call.maybe_out<T>("gradient of input", of_x_, N, C, grid.plane());                                                     \
        T *of_where = call.maybe_out<T>("gradient of positions", of_where_, D, N, L);                                                    \
        rl::sampled(call, grid, x, where, D, by, [=](const auto &at) {                                                                   \
            if (of_x) at.of_input(g, of_x);                                                                                              \
            if (of_where && x) at.of_points(g, of_where);                                                                                \
        });                                                                                                                              \
    }
RL_BOTH(ALL)
