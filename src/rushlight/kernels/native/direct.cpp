// Convolution as a direct sum: vectors of neighbouring outputs, whose elements for each kernel position are neighbours in a copy of
// the input with its padding.  Nothing is unfolded: of each element one copy is made, not one for each kernel position (after
// Georganas et al., "Anatomy of High-Performance Deep Learning Convolutions on SIMD Architectures", 2018).
#include "direct.h"

#include "padded.h"
#include "squares.h"

namespace rl {
namespace {

constexpr long kSlab = 1 << 17;  // elements of all channels that are copied at once: half of a second-level cache
constexpr long kSteps = 64;      // vectors of outputs whose products are summed before their lanes are: four rows of them fill half of a first-level cache
constexpr int kOuter = kRows / 2, kInner = 2 * kVectors;  // outputs and window elements whose products are summed together

// out[v] (R, L), a row every `pitch`, `rows` of which are written = panels a (steps, R) times the vectors at from[v] + off[k].
template <class T, int NV>
static __attribute__((noinline)) void sums(const T *a, const T *const *from, const int32_t *off, long steps, T *const *out, long pitch, long rows) {
    constexpr int L = kLanes<T>;
    V<T> sum[kRows][NV];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) sum[i][v] = V<T>{};
    const T *at[NV];
    for (int v = 0; v < NV; ++v) at[v] = from[v];
    for (long k = 0; k < steps; ++k, a += kRows) {
        const long place = off[k];
        V<T> right[NV];
#pragma GCC unroll 3
        for (int v = 0; v < NV; ++v) right[v] = load(at[v] + place);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
            const T left = a[i];
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) sum[i][v] += left * right[v];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i)
        if (i < rows)
#pragma GCC unroll 3
            for (int v = 0; v < NV; ++v) std::memcpy(out[v] + i * pitch, &sum[i][v], L * sizeof(T));
}

// How outputs are cut into slabs, each of slices, rows and columns.
template <class T> struct Slabs {
    static constexpr long L = kLanes<T>;
    const Windows &s;
    Windows part;  // of one slab
    long cuts[3];

    struct Slab {
        long first[3], size[3];
        int64_t before[3];  // places of padding before what its windows reach
    };

    // Slices are divided first, then rows, then columns, until it `fits`.
    template <class F> Slabs(const Windows &of, F fits) : s(of), part(of) {
        for (int d = 0; d < 3; ++d) {
            const long least = d == 2 ? L : 1;
            for (long n = 2; part.out[d] > least && !fits(part); ++n) part.out[d] = ceil_div(ceil_div(s.out[d], n), least) * least;
            cuts[d] = ceil_div(s.out[d], part.out[d]);
        }
    }

    // How many there are, each as large as a part.
    long count_of(const Windows &each) const {
        long count = 1;
        for (int d = 0; d < 3; ++d) count *= ceil_div(s.out[d], each.out[d]);
        return count;
    }
    long count() const { return cuts[0] * cuts[1] * cuts[2]; }
    bool full() const { return s.out[2] % part.out[2] == 0 || s.out[2] % part.out[2] >= L; }  // the last columns fill a vector, too

    Slab at(long number) const {
        const long which[3] = {number / cuts[2] / cuts[1], number / cuts[2] % cuts[1], number % cuts[2]};
        Slab slab;
        for (int d = 0; d < 3; ++d) {
            slab.first[d] = which[d] * part.out[d];
            slab.size[d] = std::min<long>(part.out[d], s.out[d] - slab.first[d]);
            slab.before[d] = s.pad[d] - slab.first[d] * s.stride[d];
        }
        return slab;
    }

    // f(place in the slab's sheet, place among outputs) for each vector; the last one of a row overlaps.
    template <class F> RL_MEMBER void each_vector(const Slab &slab, const Sheet<T> &sheet, F f) const {
        for (long z = 0; z < slab.size[0]; ++z)
            for (long y = 0; y < slab.size[1]; ++y)
                for (long x = 0; x < slab.size[2]; x += L) {
                    const long column = std::min(x, slab.size[2] - L);
                    f(sheet.at(z, y) + column, ((slab.first[0] + z) * s.out[1] + slab.first[1] + y) * s.out[2] + slab.first[2] + column);
                }
    }
};

template <class T> long plane_of(const Windows &part) { return Sheet<T>(part, 0).count(); }

// Channels of an image as a slab's windows reach them.
template <class T> void copy_channels(const Sheet<T> &sheet, const typename Slabs<T>::Slab &slab, const T *from, long channels, T *to) {
    const long each = sheet.count(), area = sheet.s.area();
    std::memset(to, 0, channels * each * sizeof(T));
    for (long c = 0; c < channels; ++c) sheet.copy(from + c * area, to + c * each, slab.before);
}

// Where the elements of a window of several channels are, counted from the first one.
template <class T> void window(const Windows &part, long channels, int32_t *off) {
    const long taps = part.taps(), each = plane_of<T>(part);
    Sheet<T>(part, 0).places(off);
    for (long k = taps; k < channels * taps; ++k) off[k] = (int32_t)(off[k - taps] + each);
}

template <class T> struct Direct {
    static constexpr long L = kLanes<T>;
    const Windows &s;
    long rows = s.O / s.G, channels = s.C / s.G, depth = channels * s.taps(), tiles = ceil_div(rows, kRows);
    Slabs<T> slabs;

    explicit Direct(const Windows &of) : s(of), slabs(of, [this](const Windows &part) { return fits(part); }) {}

    bool fits(const Windows &part) const { return channels * plane_of<T>(part) <= kSlab; }

    // Slabs that threads take: smaller ones where these are few.  An output's sum is the same in each.
    Slabs<T> for_threads() const {
        constexpr long kLeast = 1024;  // outputs of a channel, beside which the borders that two slabs copy are few
        const long others = s.N * s.G, wanted = 2L * threads();
        if (threads() == 1 || others * slabs.count() >= wanted) return slabs;
        const Slabs<T> smaller(s, [=, this_ = this](const Windows &part) {
            return this_->fits(part) && (part.length() <= kLeast || others * this_->slabs.count_of(part) >= wanted);
        });
        return smaller.full() ? smaller : slabs;
    }

    // Unfolding takes as long as some six outputs; here, what the last vectors of rows make twice is lost.
    bool pays() const {
        const long lost = ceil_div(s.out[2], L) * L - s.out[2];
        return s.taps() > 1 && s.out[2] >= L && depth >= 16 && lost * rows <= 6 * s.out[2] && slabs.full() &&
               channels * plane_of<T>(slabs.part) <= 2 * kSlab;
    }

    long panels() const { return s.G * tiles * depth * kRows; }

    // Weights as panels: (G, tiles, depth, kRows)
    void pack(const T *w, T *to) const {
        parallel_for(s.G * tiles, 1 + kGrain / (depth * kRows), [=, this_ = this](long begin, long end) {
            for (long t = begin; t < end; ++t) this_->pack(w, t, to + t * this_->depth * kRows);
        });
    }
    void pack(const T *w, long tile, T *to) const {
        const long first = tile % tiles * kRows, some = std::min<long>(kRows, rows - first);
        const T *from = w + (tile / tiles * rows + first) * depth;
        for (long k = 0; k < depth; ++k, to += kRows)
            for (long i = 0; i < kRows; ++i) to[i] = from[std::min(i, some - 1) * depth + k];
    }

    // x: a group's channels of an image; y: its outputs
    void slab(const Slabs<T> &slabs, long number, const T *x, const T *panel, const int32_t *off, T *y) const {
        const Sheet<T> sheet(slabs.part, 0);
        const auto slab = slabs.at(number);
        T *copy = scratch<T, 2>(channels * sheet.count());
        copy_channels(sheet, slab, x, channels, copy);
        const long most = slab.size[0] * slab.size[1] * ceil_div(slab.size[2], L);
        const T **from = scratch<const T *, 3>(most);
        T **to = scratch<T *, 4>(most);
        long count = 0;
        slabs.each_vector(slab, sheet, [=, &count](long in, long out) { from[count] = copy + in, to[count++] = y + out; });
        for (long i = 0; i < rows; i += kRows, panel += depth * kRows)
            for (long v = 0; v < count; v += kVectors) tile(panel, from + v, off, to + v, count - v, i);
    }

    void tile(const T *panel, const T *const *from, const int32_t *off, T *const *to, long count, long i) const {
        const long length = s.length(), some = std::min<long>(kRows, rows - i);
        T *out[kVectors];
        for (long j = 0; j < std::min<long>(kVectors, count); ++j) out[j] = to[j] + i * length;
        if (count >= 3) sums<T, 3>(panel, from, off, depth, out, length, some);
        else if (count == 2) sums<T, 2>(panel, from, off, depth, out, length, some);
        else sums<T, 1>(panel, from, off, depth, out, length, some);
    }

    void run(const T *x, const T *w, T *y) const {
        Scratch<T> packed(panels());
        Scratch<int32_t> offsets(depth);
        T *panel = packed.get();
        int32_t *off = offsets.get();
        pack(w, panel);
        const Slabs<T> taken = for_threads();
        window<T>(taken.part, channels, off);
        parallel_tasks(s.N * s.G * taken.count(), s.work(), [=, this_ = this, &taken](long begin, long end) {
            const long count = taken.count(), deep = this_->depth * kRows * this_->tiles;
            for (long t = begin; t < end; ++t) {
                const long part = t / count;  // image and group
                this_->slab(taken, t % count, x + part * this_->channels * this_->s.area(), panel + part % this_->s.G * deep, off,
                            y + part * this_->rows * this_->s.length());
            }
        });
    }
};

// to (NO, NI), a row every `pitch`, += the lanes' sums of products of the vectors at g[i] + step.out and x[j] + step.in.
struct Step {
    int32_t in, out;
};
template <class T, int NI>
static __attribute__((noinline)) void dots(const T *const *g, const T *x, const int32_t *off, const Step *steps, long count, T *to, long pitch, long outer) {
    constexpr int L = kLanes<T>;
    V<T> sum[kOuter][NI];
#pragma GCC unroll 8
    for (int i = 0; i < kOuter; ++i)
#pragma GCC unroll 6
        for (int j = 0; j < NI; ++j) sum[i][j] = V<T>{};
    const T *left[kOuter], *right[NI];
    for (int i = 0; i < kOuter; ++i) left[i] = g[i];
    for (int j = 0; j < NI; ++j) right[j] = x + off[j];
    for (long k = 0; k < count; ++k) {
        const Step step = steps[k];
        V<T> a[kOuter];
#pragma GCC unroll 8
        for (int i = 0; i < kOuter; ++i) a[i] = load(left[i] + step.out);
#pragma GCC unroll 6
        for (int j = 0; j < NI; ++j) {
            const V<T> b = load(right[j] + step.in);
#pragma GCC unroll 8
            for (int i = 0; i < kOuter; ++i) sum[i][j] += a[i] * b;
        }
    }
    T total[kOuter][NI] = {};
#pragma GCC unroll 6
    for (int j = 0; j < NI; ++j) add_lanes<L, kOuter>(&sum[0][j], NI, &total[0][j], NI);
    for (long i = 0; i < outer; ++i)
        for (int j = 0; j < NI; ++j) to[i * pitch + j] += total[i][j];
}

// The weight's gradient: window elements times outputs' gradients, both in vectors of neighbouring outputs.
template <class T> struct DirectWeight {
    static constexpr long L = kLanes<T>;
    const Windows &s;
    long outputs = s.O / s.G, channels = s.C / s.G, taps = s.taps(), rows = channels * taps;
    Slabs<T> slabs;
    long block = std::max(1L, std::min(channels, kSlab / 2 / plane_of<T>(slabs.part)));  // channels that are copied at once

    explicit DirectWeight(const Windows &of)
        : s(of), slabs(of, [](const Windows &part) { return part.length() <= kSteps * L && plane_of<T>(part) <= kSlab / 8; }) {}

    bool pays() const {
        return taps > 1 && s.out[2] % L == 0 && slabs.part.length() >= 8 * L && plane_of<T>(slabs.part) <= kSlab / 4 && outputs >= kOuter;
    }

    // Into how many parts slabs are cut where the weight is small.  On any number of threads as many: the sum is the same.
    long parts() const {
        constexpr long kSmall = 1 << 18;
        const long size = s.count("weight");
        return size > 1 << 16 ? 1 : std::min({8L, s.N * slabs.count(), kSmall / std::max(size, 1L)});
    }
    long room() const { return (parts() > 1 ? parts() * s.count("weight") : 0) * (long)sizeof(T) + block * taps * (long)sizeof(int32_t); }

    // `some` channels from c on of slab `number` of image n: added to `to`, a gradient of the weight
    void slab(long n, long number, long group, long c, long some, const T *g, const T *x, const int32_t *off, T *to) const {
        const Sheet<T> sheet(slabs.part, 0);
        const auto slab = slabs.at(number);
        T *copy = scratch<T, 2>(block * sheet.count());
        copy_channels(sheet, slab, x + (n * s.C + group * channels + c) * s.area(), some, copy);
        Step *steps = scratch<Step, 3>(slabs.part.length() / L);
        long count = 0;
        slabs.each_vector(slab, sheet, [=, &count](long in, long out) { steps[count++] = {(int32_t)in, (int32_t)out}; });
        for (long o = 0; o < outputs; o += kOuter) {
            const T *row[kOuter];
            const long first = group * outputs + o, outer = std::min<long>(kOuter, outputs - o);
            for (long i = 0; i < kOuter; ++i) row[i] = g + (n * s.O + first + std::min(i, outer - 1)) * s.length();
            T *sum = to + first * rows + c * taps;
            for (long r = 0, end = some * taps; r < end;) {
                if (end - r >= kInner) r += tile<kInner>(row, copy, off + r, steps, count, sum + r, outer);
                else if (end - r >= kVectors) r += tile<kVectors>(row, copy, off + r, steps, count, sum + r, outer);
                else r += tile<1>(row, copy, off + r, steps, count, sum + r, outer);
            }
        }
    }

    template <int NI>
    long tile(const T *const *row, const T *x, const int32_t *off, const Step *steps, long count, T *to, long outer) const {
        dots<T, NI>(row, x, off, steps, count, to, rows, outer);
        return NI;
    }

    void run(const T *g, const T *x, T *dw) const {
        const long pieces = parts(), size = s.count("weight"), all = s.N * slabs.count();
        Scratch<T> own(pieces > 1 ? pieces * size : 0);
        Scratch<int32_t> offsets(block * taps);
        T *to = pieces > 1 ? own.get() : dw;
        int32_t *off = offsets.get();
        window<T>(slabs.part, block, off);
        const long wanted = ceil_div(3 * threads(), pieces * s.G), some = std::min(block, ceil_div(channels, std::min(channels, wanted)));
        const long blocks = ceil_div(channels, some);
        parallel_tasks(pieces * s.G * blocks, s.work(), [=, this_ = this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                const long piece = t / blocks / this_->s.G, c = t % blocks * some;
                this_->piece(t / blocks % this_->s.G, c, std::min(some, this_->channels - c), all * piece / pieces, all * (piece + 1) / pieces, g,
                             x, off, to + piece * size);
            }
        });
        if (pieces == 1) return;
        for (long i = 0; i < size; ++i) {
            T sum = to[i];
            for (long piece = 1; piece < pieces; ++piece) sum += to[piece * size + i];
            dw[i] = sum;
        }
    }

    // Slabs [begin, end) of all images.
    void piece(long group, long c, long some, long begin, long end, const T *g, const T *x, const int32_t *off, T *to) const {
        for (long o = group * outputs; o < (group + 1) * outputs; ++o) std::fill_n(to + o * rows + c * taps, some * taps, T(0));
        for (long i = begin; i < end; ++i) slab(i / slabs.count(), i % slabs.count(), group, c, some, g, x, off, to);
    }
};

}  // namespace

template <class T> bool conv_direct(const Windows &s, const T *x, const T *w, T *y) {
    const Direct<T> direct(s);
    if (!direct.pays()) return false;
    direct.run(x, w, y);
    return true;
}

template <class T> bool conv_weight_direct(const Windows &s, const T *g, const T *x, T *dw) {
    const DirectWeight<T> direct(s);
    if (!direct.pays()) return false;
    direct.run(g, x, dw);
    return true;
}

template <class T> long direct_room(const Windows &s) {
    const Direct<T> direct(s);
    return direct.pays() ? direct.panels() * (long)sizeof(T) + direct.depth * (long)sizeof(int32_t) : 0;
}

template <class T> bool weight_direct_room(const Windows &s, long &room) {
    const DirectWeight<T> direct(s);
    if (!direct.pays()) return false;
    room = direct.room();
    return true;
}

#define RL_DIRECT(T)                                                             \
    template bool conv_direct(const Windows &, const T *, const T *, T *);        \
    template bool conv_weight_direct(const Windows &, const T *, const T *, T *); \
    template long direct_room<T>(const Windows &);                                \
    template bool weight_direct_room<T>(const Windows &, long &);
RL_DIRECT(float)
RL_DIRECT(double)

}  // namespace rl
