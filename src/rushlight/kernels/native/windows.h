// Sliding windows over images (N, C, D, H, W): where each kernel position of each output looks.
#pragma once
#include "common.h"
#include "gemm.h"

namespace rl {

// N images, C channels in, O out, G groups; sizes of three dimensions, unused ones first and 1.
struct Windows {
    int64_t N, C, O, G, in[3], out[3], k[3], stride[3], pad[3], dil[3];

    explicit Windows(const Array *a) { std::memcpy(this, a->data, sizeof *this); }
    long area() const { return in[0] * in[1] * in[2]; }
    long length() const { return out[0] * out[1] * out[2]; }
    long taps() const { return k[0] * k[1] * k[2]; }
    // Output positions [first, last) of dimension d whose element at kernel position t is inside.
    void inside(int d, long t, long &first, long &last) const {
        long shift = pad[d] - t * dil[d];  // input position = output position * stride - shift
        first = shift > 0 ? (shift + stride[d] - 1) / stride[d] : 0;
        long end = in[d] + shift;
        last = end <= 0 ? 0 : (end + stride[d] - 1) / stride[d];
        if (last > out[d]) last = out[d];
        if (first > last) first = last;
    }
};

// For `count` columns (image, output position) from `first` on and each kernel position: the place in a channel,
// counted from image `image`, or -1 in the padding.  Columns come in groups of a vector; `run` is the place of a
// group's first lane where the lanes lie side by side, else kScattered.
template <class T> struct Places {
    static constexpr int kScattered = INT32_MIN;
    long image, count, groups;
    int32_t *at, *run;

    // `identity`: columns are those of images (N, channels, L) themselves.
    void find(const Windows &s, long first, long columns, bool identity, long channels, int32_t *room) {
        constexpr int L = kLanes<T>;
        count = columns;
        groups = (columns + L - 1) / L;
        image = first / s.length();
        long taps = identity ? 1 : s.taps(), lanes = groups * L;
        at = room;
        run = room + taps * lanes;
        long image_size = channels * (identity ? s.length() : s.area());
        for (long j = 0; j < lanes; ++j) {
            long column = first + (j < columns ? j : columns - 1), l = column % s.length();
            long base = (column / s.length() - image) * image_size;
            if (identity) at[j] = j < columns ? (int32_t)(base + l) : -1;
            else one_column(s, j, lanes, j < columns, base, l);
        }
        for (long i = 0; i < taps * groups; ++i) run[i] = run_of(at + i * L);
    }

    static long room(const Windows &s, long columns) { return s.taps() * ((columns + 127) / 64 * 64) * 2; }

    // Row `tap` of the columns' window elements in channel x, groups [begin, end).
    RL_MEMBER void load(const T *x, long tap, long begin, long end, T *to) const {
        constexpr int L = kLanes<T>;
        for (long q = begin; q < end; ++q, to += L) {
            const int32_t *i = at + (tap * groups + q) * L;
            int32_t from = run[tap * groups + q];
            if (from == kScattered) {
#pragma omp simd
                for (int l = 0; l < L; ++l) to[l] = i[l] >= 0 ? x[i[l]] : T(0);
            } else {
                const T *source = x + from;
#pragma omp simd
                for (int l = 0; l < L; ++l) to[l] = i[l] >= 0 ? source[l] : T(0);
            }
        }
    }

    // The adjoint of load over all groups: adds.
    RL_MEMBER void add(const T *from, long tap, T *x) const {
        constexpr int L = kLanes<T>;
        for (long q = 0; q < groups; ++q, from += L) {
            const int32_t *i = at + (tap * groups + q) * L;
            int32_t to = run[tap * groups + q];
            if (to == kScattered) {
                for (int l = 0; l < L; ++l)
                    if (i[l] >= 0) x[i[l]] += from[l];
            } else {
                T *target = x + to;
#pragma omp simd
                for (int l = 0; l < L; ++l)
                    if (i[l] >= 0) target[l] += from[l];
            }
        }
    }

  private:
    void one_column(const Windows &s, long j, long lanes, bool real, long base, long l) {
        long o[3] = {l / (s.out[1] * s.out[2]), l / s.out[2] % s.out[1], l % s.out[2]};
        int32_t *to = at + j;
        for (long a = 0; a < s.k[0]; ++a)
            for (long b = 0; b < s.k[1]; ++b)
                for (long c = 0; c < s.k[2]; ++c, to += lanes) {
                    long z = o[0] * s.stride[0] - s.pad[0] + a * s.dil[0];
                    long y = o[1] * s.stride[1] - s.pad[1] + b * s.dil[1];
                    long x = o[2] * s.stride[2] - s.pad[2] + c * s.dil[2];
                    bool in = real && z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1] && x >= 0 && x < s.in[2];
                    *to = in ? (int32_t)(base + (z * s.in[1] + y) * s.in[2] + x) : -1;
                }
    }

    static int32_t run_of(const int32_t *i) {
        int32_t from = kScattered;
        for (int l = 0; l < kLanes<T>; ++l) {
            if (i[l] < 0) continue;
            if (from == kScattered) from = i[l] - l;
            else if (i[l] - l != from) return kScattered;
        }
        return from == kScattered ? 0 : from;
    }
};

}  // namespace rl
