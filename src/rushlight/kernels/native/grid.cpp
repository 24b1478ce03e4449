// Linear interpolation at points between the elements of images, and its gradients.
// input (N, C, *S), where (D, N, L) positions counted in elements, the first for the first of S; what lies outside counts as 0.
#include <algorithm>
#include <cmath>

#include "common.h"

namespace rl {
namespace {

constexpr long kPoints = 256;   // looked at together
constexpr long kChannels = 8;   // planes of a gradient that a thread adds to together

struct Grid {
    long N, C, L, S[3];
    long plane() const { return S[0] * S[1] * S[2]; }
};

// The 2^D elements around each of some points: bit d of a corner says whether it is the farther one in dimension d.
template <class T, int D> struct Corners {
    static constexpr int K = 1 << D;
    int32_t at[K][kPoints];  // in the plane; -1 outside
    T part[D][2][kPoints];   // the nearness to both, by dimension

    void find(const Grid &grid, const T *where, long count) {
        const long *size = grid.S + 3 - D;
        int32_t low[D][kPoints];
        for (int d = 0; d < D; ++d) {
            const T *x = where + d * grid.N * grid.L;
            const T most = (T)size[d];
#pragma omp simd
            for (long l = 0; l < count; ++l) {
                const T base = std::floor(x[l]);
                part[d][0][l] = base + 1 - x[l];
                part[d][1][l] = x[l] - base;
                low[d][l] = (int32_t)((base >= -1) & (base < most) ? base : T(-2));  // of NaN too
            }
        }
        for (int k = 0; k < K; ++k)
            for (long l = 0; l < count; ++l) {
                int32_t place = 0;
                bool in = true;
                for (int d = 0; d < D; ++d) {
                    const int32_t i = low[d][l] + (k >> d & 1);
                    in &= (uint32_t)i < (uint32_t)size[d];
                    place = place * (int32_t)size[d] + i;
                }
                at[k][l] = in ? place : -1;
            }
    }

    // Their weights; without a dimension, how they change along it.
    void weights(long count, int without, T (*to)[kPoints]) const {
        for (int k = 0; k < K; ++k) {
#pragma omp simd
            for (long l = 0; l < count; ++l) {
                T w = 1;
                for (int d = 0; d < D; ++d) w *= d == without ? T((k >> d & 1) ? 1 : -1) : part[d][k >> d & 1][l];
                to[k][l] = w;
            }
        }
    }

    T value(const T *plane, int k, long l) const {
        const int32_t i = at[k][l];
        const T v = plane[i < 0 ? 0 : i];
        return i < 0 ? T(0) : v;
    }
};

template <class T, int D> struct Linear {
    const Grid grid;
    const T *x, *where;

    // Points in chunks, each of one image.
    template <class F> void chunks(F body) const {
        const long each = ceil_div(grid.L, kPoints);
        parallel_for(grid.N * each, 1 + kGrain / (kPoints * grid.C + 1), [&](long begin, long end) {
            Corners<T, D> corners;
            for (long i = begin; i < end; ++i) {
                const long n = i / each, first = i % each * kPoints, count = std::min(kPoints, grid.L - first);
                corners.find(grid, where + n * grid.L + first, count);
                body(corners, n, first, count);
            }
        });
    }

    void values(T *o) const {
        chunks([&](const Corners<T, D> &corners, long n, long first, long count) {
            T weight[1 << D][kPoints];
            corners.weights(count, -1, weight);
            for (long c = 0; c < grid.C; ++c) {
                const T *plane = x + (n * grid.C + c) * grid.plane();
                T *to = o + (n * grid.C + c) * grid.L + first;
#pragma omp simd
                for (long l = 0; l < count; ++l) {
                    T sum = 0;
                    for (int k = 0; k < 1 << D; ++k) sum += corners.value(plane, k, l) * weight[k][l];
                    to[l] = sum;
                }
            }
        });
    }

    void of_points(const T *g, T *o) const {
        chunks([&](const Corners<T, D> &corners, long n, long first, long count) {
            T change[D][1 << D][kPoints], sums[D][kPoints];
            for (int d = 0; d < D; ++d) {
                corners.weights(count, d, change[d]);
                std::fill_n(sums[d], count, T(0));
            }
            for (long c = 0; c < grid.C; ++c) {
                const T *plane = x + (n * grid.C + c) * grid.plane(), *from = g + (n * grid.C + c) * grid.L + first;
#pragma omp simd
                for (long l = 0; l < count; ++l)
                    for (int k = 0; k < 1 << D; ++k) {
                        const T v = corners.value(plane, k, l) * from[l];
                        for (int d = 0; d < D; ++d) sums[d][l] += v * change[d][k][l];
                    }
            }
            for (int d = 0; d < D; ++d) std::copy_n(sums[d], count, o + (d * grid.N + n) * grid.L + first);
        });
    }

    void of_input(const T *g, T *o) const {
        const long groups = ceil_div(grid.C, kChannels);
        parallel_for(grid.N * groups, 1, [&](long begin, long end) {
            Corners<T, D> corners;
            T weight[1 << D][kPoints];
            for (long i = begin; i < end; ++i) {
                const long n = i / groups, low = i % groups * kChannels, high = std::min(low + kChannels, grid.C);
                std::fill(o + (n * grid.C + low) * grid.plane(), o + (n * grid.C + high) * grid.plane(), T(0));
                for (long first = 0; first < grid.L; first += kPoints) {
                    const long count = std::min(kPoints, grid.L - first);
                    corners.find(grid, where + n * grid.L + first, count);
                    corners.weights(count, -1, weight);
                    for (long c = low; c < high; ++c)
                        add(corners, weight, g + (n * grid.C + c) * grid.L + first, count, o + (n * grid.C + c) * grid.plane());
                }
            }
        });
    }

    static void add(const Corners<T, D> &corners, const T (*weight)[kPoints], const T *g, long count, T *plane) {
        for (int k = 0; k < 1 << D; ++k)
            for (long l = 0; l < count; ++l)
                if (corners.at[k][l] >= 0) plane[corners.at[k][l]] += g[l] * weight[k][l];
    }
};

template <class T, class F> void with_dimensions(const Grid &grid, const T *x, const T *where, long dimensions, F body) {
    if (dimensions == 2) body(Linear<T, 2>{grid, x, where});
    else body(Linear<T, 3>{grid, x, where});
}

}  // namespace
}  // namespace rl

#define ALL(T, S)                                                                                                        \
    RL_EXPORT void rl_grid_linear_##S(Array *x_, Array *where_, Array *o_, long N, long C, long L, long D, long s0, long s1, long s2) { \
        rl::Call call("grid_linear");                                                                                    \
        const rl::Grid grid{N, C, L, {s0, s1, s2}};                                                                      \
        const T *x = call.in<T>("input", x_, N, C, grid.plane()), *where = call.in<T>("positions", where_, D, N, L);     \
        T *o = call.out<T>("out", o_, N, C, L);                                                                          \
        call.run([=] { rl::with_dimensions(grid, x, where, D, [=](const auto &linear) { linear.values(o); }); });        \
    }                                                                                                                    \
    RL_EXPORT void rl_grid_linear_backward_##S(Array *g_, Array *x_, Array *where_, Array *of_x_, Array *of_where_, long N, long C, \
                                               long L, long D, long s0, long s1, long s2) {                              \
        rl::Call call("grid_linear_backward");                                                                           \
        const rl::Grid grid{N, C, L, {s0, s1, s2}};                                                                      \
        const T *g = call.in<T>("gradient", g_, N, C, L), *x = call.maybe_in<T>("input", x_, N, C, grid.plane());        \
        const T *where = call.in<T>("positions", where_, D, N, L);                                                       \
        T *of_x = call.maybe_out<T>("gradient of input", of_x_, N, C, grid.plane());                                     \
        T *of_where = call.maybe_out<T>("gradient of positions", of_where_, D, N, L);                                    \
        call.run([=] {                                                                                                   \
            rl::with_dimensions(grid, x, where, D, [=](const auto &linear) {                                             \
                if (of_x) linear.of_input(g, of_x);                                                                      \
                if (of_where && x) linear.of_points(g, of_where);                                                        \
            });                                                                                                          \
        });                                                                                                              \
    }
RL_BOTH(ALL)
