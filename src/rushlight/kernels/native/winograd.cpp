// Convolutions of 3 x 3 places, a step apart, by a quarter of the products: F(4 x 4, 3 x 3).
//
// 4 x 4 outputs need 6 x 6 inputs.  Both are taken for polynomials, whose values at 36 points are multiplied instead
// of their coefficients (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016).  The points 0,
// +-3/4, +-3/2 and infinity round to half the error of the usual 0, +-1, +-2 (after Barabasz et al., "Error
// Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020); their powers are exact.
#include "winograd.h"

#include <algorithm>
#include <atomic>

#include "memory.h"

namespace rl {
namespace {

constexpr long kTiles = kWide<float>;  // done at once
constexpr long kPoints = 36;
constexpr long kApart = 80;  // keeps the numbers of different points from the same place of a cache

// In what follows every sum has one product, or one by a power of two, which is exact: compilers that join products and sums
// have no choice which, and lanes of a vector and what is left of a row get the same bits.

// A polynomial of six coefficients at six points, each `step` numbers from the other.
RL_INLINE void six_of_six(float d0, float d1, float d2, float d3, float d4, float d5, float *to, long step) {
    float even = d4 - 2.25f * d2, odd = d3 - 2.25f * d1, even2 = d4 - 0.5625f * d2, odd2 = d3 - 0.5625f * d1;
    to[0] = d4 - 2.8125f * d2 + 1.265625f * d0;
    to[step] = even + 0.75f * odd;
    to[2 * step] = even - 0.75f * odd;
    to[3 * step] = even2 + 1.5f * odd2;
    to[4 * step] = even2 - 1.5f * odd2;
    to[5 * step] = d5 - 2.8125f * d3 + 1.265625f * d1;
}

// Three coefficients at the points, each divided by what the other points' distances multiply to.
RL_INLINE void six_of_three(float g0, float g1, float g2, float *to, long step) {
    float even = g0 + 0.5625f * g2, even2 = g0 + 2.25f * g2;
    to[0] = g0 * (64.f / 81);
    to[step] = (even + 0.75f * g1) * (-128.f / 243);
    to[2 * step] = (even - 0.75f * g1) * (-128.f / 243);
    to[3 * step] = (even2 + 1.5f * g1) * (32.f / 243);
    to[4 * step] = (even2 - 1.5f * g1) * (32.f / 243);
    to[5 * step] = g2;
}

// Four coefficients at the points, divided alike.
RL_INLINE void six_of_four(float g0, float g1, float g2, float g3, float *to, long step) {
    float even = g0 + 0.5625f * g2, odd = g1 + 0.5625f * g3, even2 = g0 + 2.25f * g2, odd2 = g1 + 2.25f * g3;
    to[0] = g0 * (64.f / 81);
    to[step] = (even + 0.75f * odd) * (-128.f / 243);
    to[2 * step] = (even - 0.75f * odd) * (-128.f / 243);
    to[3 * step] = (even2 + 1.5f * odd2) * (32.f / 243);
    to[4 * step] = (even2 - 1.5f * odd2) * (32.f / 243);
    to[5 * step] = g3;
}

// Three outputs of the values at the points.
RL_INLINE void three_of_six(float m0, float m1, float m2, float m3, float m4, float m5, float *to, long step) {
    float even = m1 + m2, odd = m1 - m2, even2 = m3 + m4, odd2 = m3 - m4;
    to[0] = m0 + even + even2;
    to[step] = 0.75f * (odd + 2 * odd2);
    to[2 * step] = 0.5625f * (even + 4 * even2) + m5;
}

// Four outputs of the values at the points.
RL_INLINE void four_of_six(float m0, float m1, float m2, float m3, float m4, float m5, float *to, long step) {
    float even = m1 + m2, odd = m1 - m2, even2 = m3 + m4, odd2 = m3 - m4;
    to[0] = m0 + even + even2;
    to[step] = 0.75f * (odd + 2 * odd2);
    to[2 * step] = 0.5625f * (even + 4 * even2);
    to[3 * step] = 0.421875f * (odd + 8 * odd2) + m5;
}

// Tiles of 4 x 4 outputs of all images in one row.
struct Tiles {
    const Windows &s;
    long down, across, tiles, rows, channels;  // rows: outputs of a group

    explicit Tiles(const Windows &windows)
        : s(windows), down(ceil_div(s.out[1], 4)), across(ceil_div(s.out[2], 4)), tiles(s.N * down * across),
          rows(s.O / s.G), channels(s.C / s.G) {}

    // Whether products saved outweigh the ways to the points and back; sums of few channels stay exact for integers.
    bool pays() const {
        bool square = s.in[0] == 1 && s.k[0] == 1 && s.out[0] == 1 && s.pad[0] == 0;
        for (int d = 1; d < 3; ++d) square = square && s.k[d] == 3 && s.stride[d] == 1 && s.dil[d] == 1;
        return square && channels >= 16 && rows >= 16 && tiles >= 24 && s.N * s.length() >= 11 * tiles;
    }

    // Outputs that are done at once: as many as leave the buffers for one thread, each * outputs + more numbers, at most
    // 2 MiB and twice the size of what is there anyway; 0 if too few do.
    long rows_within(long each, long more) const {
        long most = 2 * (s.count("input") + s.count("output") + s.count("weight")) + (1L << 19);
        for (long parts = 1; parts <= ceil_div(rows, 64); ++parts) {
            long some = ceil_div(ceil_div(rows, parts), kRows) * kRows;
            if (each * some + more <= most) return some;
        }
        return 0;
    }

    // f(image, row of tiles, first tile of it, tiles, place in the strip) for the rows that a strip goes through
    template <class F> RL_MEMBER void each_run(long first, long count, F f) const {
        for (long done = 0; done < count;) {
            long t = first + done, tile = t % across, some = std::min(across - tile, count - done);
            f(t / across / down, t / across % down, tile, some, done);
            done += some;
        }
    }

    // The 6 x 6 inputs of tiles in one channel at the points, `step` numbers apart, tiles side by side.
    void inputs(const float *channel, long first, long count, float *to, long step) const {
        constexpr long kLine = 4 * kTiles + 16;
        float left[6][4 * kTiles], right[6][2 * kTiles];  // the first four columns of each tile's six, the last two
        each_run(first, count, [&](long image, long row, long tile, long some, long place) {
            float lines[6][kLine], there[6][kLine];
            long width = ceil_div(4 * some + 2, kLanes<float>) * kLanes<float>, start = 4 * tile - s.pad[2];
            const float *from = channel + image * s.C * s.area();
            for (int r = 0; r < 6; ++r) line(from, s.in, 4 * row + r - s.pad[1], start, width, lines[r]);
#pragma omp simd
            for (long j = 0; j < width; ++j)
                six_of_six(lines[0][j], lines[1][j], lines[2][j], lines[3][j], lines[4][j], lines[5][j], &there[0][j],
                           kLine);
            for (int r = 0; r < 6; ++r) {
                std::memcpy(left[r] + 4 * place, there[r], 4 * some * sizeof(float));
                for (long i = 0; i < some; ++i)
                    std::memcpy(right[r] + 2 * (place + i), there[r] + 4 * i + 4, 2 * sizeof(float));
            }
        });
        for (int r = 0; r < 6; ++r) {
            const float *l = left[r], *g = right[r];
            float *at = to + 6 * r * step;
#pragma omp simd
            for (long j = 0; j < count; ++j)
                six_of_six(l[4 * j], l[4 * j + 1], l[4 * j + 2], l[4 * j + 3], g[2 * j], g[2 * j + 1], at + j, step);
        }
    }

    // The 4 x 4 gradients of tiles in one output channel at the points, laid out alike.
    void gradients(const float *channel, long first, long count, float *to, long step) const {
        float at[6][4 * kTiles];
        each_run(first, count, [&](long image, long row, long tile, long some, long place) {
            float lines[4][4 * kTiles];
            const float *from = channel + image * s.O * s.length();
            for (int r = 0; r < 4; ++r) line(from, s.out, 4 * row + r, 4 * tile, 4 * some, lines[r]);
#pragma omp simd
            for (long j = 0; j < 4 * some; ++j)
                six_of_four(lines[0][j], lines[1][j], lines[2][j], lines[3][j], &at[0][4 * place + j], 4 * kTiles);
        });
        for (int r = 0; r < 6; ++r, to += 6 * step) {
            const float *l = at[r];
#pragma omp simd
            for (long j = 0; j < count; ++j)
                six_of_four(l[4 * j], l[4 * j + 1], l[4 * j + 2], l[4 * j + 3], to + j, step);
        }
    }

    // Columns [start, start + width) of an image's row, 0 in the padding.
    static void line(const float *image, const int64_t *size, long row, long start, long width, float *to) {
        bool inside = row >= 0 && row < size[1];
        const float *from = image + (inside ? row * size[2] : 0) + start;
        long first = -start, last = inside ? size[2] - start : first;
#pragma omp simd
        for (long j = 0; j < width; ++j) to[j] = j >= first && j < last ? from[j] : 0;
    }
};

// Outputs of a block of channels, strips of tiles at a time.  A thread takes a strip and brings its inputs to the points itself; where some
// threads would have much more to do than others, or all together need much room, they share the channels of some strips instead, first of
// the inputs, then of the outputs.
struct Forward : Tiles {
    static constexpr long kChannels = 128;  // that are summed up at once, whose tiles at all points stay in the second-level cache
    static constexpr long kSome = 16, kMost = 64;  // channels of inputs that one task brings to the points, of outputs that it makes
    const float *x, *w;
    float *y;
    long strips, each, width, workers, depth, together, wave, block;
    bool shared;
    long pitch_w, pitch_x, pitch_y;

    Forward(const Windows &windows, const float *from, const float *weight, float *to)
        : Tiles(windows), x(from), w(weight), y(to), strips(0), each(tiles_of_each()), width(kTiles), workers(0),
          depth(ceil_div(channels, ceil_div(channels, kChannels))), together(0), wave(0),
          block(rows_within(kPoints * (channels + kTiles), kPoints * kTiles * depth)), shared(false) {
        strips = ceil_div(tiles, each), workers = std::min((long)threads(), strips);
        if (threads() > 1 && (20 * threads() * busiest() > 23 * tiles || workers * buffers() > most())) share();
        pitch_w = block * channels + kApart, pitch_x = (shared ? channels : depth) * width + kApart;
        pitch_y = (shared ? together : block) * width + kApart;
    }

    // Numbers in what a thread works with on a strip of its own.
    long buffers() const { return kPoints * kTiles * (depth + block); }

    // Numbers that all threads may work with: as many as two need, or a quarter of what is there anyway.
    long most() const { return std::max(2 * buffers(), long(s.count("input") + s.count("output")) / 4); }

    // Of few strips every thread takes as many.
    long tiles_of_each() const {
        const long rounds = ceil_div(ceil_div(tiles, kTiles), threads()), lanes = kLanes<float>;
        return rounds > 2 ? kTiles : std::min(kTiles, ceil_div(ceil_div(tiles, rounds * threads()), lanes) * lanes);
    }

    // Tiles of the thread that has the most.
    long busiest() const {
        const long whole = tiles / each, n = threads();
        return whole / n * each + (whole % n ? each : tiles % each);
    }

    // If there is room for the inputs of one strip.
    void share() {
        const long wide = ceil_div(ceil_div(tiles, ceil_div(tiles, kTiles)), kLanes<float>) * kLanes<float>, many = ceil_div(tiles, wide);
        const long inputs = kPoints * wide * channels, at_once = std::max(1L, std::min(many, most() / inputs));
        const long some = rows_within(kPoints * channels, inputs * at_once);
        if (!block || !some) return;
        const long parts = std::min(ceil_div(some, kRows), ceil_div(3L * threads(), at_once));
        shared = true, strips = many, each = width = wide, wave = at_once, block = some;
        together = std::min(kMost, ceil_div(ceil_div(some, parts), kRows) * kRows);
    }

    long room() const { return kPoints * (pitch_w + (shared ? wave * pitch_x : workers * (pitch_x + pitch_y))); }

    // Whether all results are finite: if one is not, others of its tile may be wrong.
    bool run() const {
        Scratch<float> scratch(room());
        float *u = scratch.get(), *v = u + kPoints * pitch_w;
        std::atomic<long> wrong{0};
        for (long group = 0; group < s.G; ++group)
            for (long o = 0; o < rows; o += block) {
                weights_of(group, o, u);
                if (shared) outputs_by_waves(group, o, u, v, wrong);
                else outputs_by_strips(group, o, u, v, wrong);
            }
        return wrong == 0;
    }

  private:
    void weights_of(long group, long o, float *u) const {
        parallel_for(block / kRows, row_grain(kPoints * kRows * channels), [=, this_ = *this](long begin, long end) {
            for (long i = begin * kRows; i < end * kRows; i += kRows)
                this_.weights(group, o + i, u + i * this_.channels);
        });
    }

    // Outputs [o, o + block) of a group, of which some may be past the last.
    void outputs_by_strips(long group, long o, const float *u, float *v, std::atomic<long> &wrong) const {
        std::atomic<long> next{0};
        parallel_tasks(workers, s.work(), [=, this_ = *this, next_ = &next, wrong_ = &wrong](long begin, long end) {
            for (long k = begin; k < end; ++k) {
                float *mine = v + k * kPoints * (this_.pitch_x + this_.pitch_y);
                for (long n; (n = (*next_)++) < this_.strips;) *wrong_ += !this_.strip(group, o, n * this_.each, u, mine);
            }
        });
    }

    void outputs_by_waves(long group, long o, const float *u, float *v, std::atomic<long> &wrong) const {
        for (long n = 0; n < strips; n += wave) {
            const long many = std::min(wave, strips - n);
            if (!o || wave < strips) inputs_of_many(group, n, many, v);
            outputs_of_many(group, o, n, many, u, v, wrong);
        }
    }

    // The inputs of strips from n on at the points: (strips, points, channels, width)
    void inputs_of_many(long group, long n, long many, float *v) const {
        const long parts = ceil_div(channels, kSome);
        parallel_tasks(many * parts, s.work(), [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t) {
                const long i = t / parts, c = t % parts * kSome, some = std::min(kSome, this_.channels - c);
                this_.inputs_of(group, c, some, (n + i) * this_.each, v + i * kPoints * this_.pitch_x + c * this_.width);
            }
        });
    }

    void inputs_of(long group, long c, long some, long first, float *v) const {
        const long count = std::min(each, tiles - first);
        for (long i = 0; i < some; ++i) inputs(x + (group * channels + c + i) * s.area(), first, count, v + i * width, pitch_x);
    }

    void outputs_of_many(long group, long o, long n, long many, const float *u, const float *v, std::atomic<long> &wrong) const {
        const long rest = std::min(block, rows - o), parts = ceil_div(rest, together);
        parallel_tasks(many * parts, s.work(), [=, this_ = *this, wrong_ = &wrong](long begin, long end) {
            float *m = scratch<float, 2>(kPoints * this_.pitch_y);
            for (long t = begin; t < end; ++t) {
                const long i = t % parts * this_.together, some = std::min(this_.together, rest - i), first = (n + t / parts) * this_.each;
                this_.sums(some, u + i * this_.channels, v + t / parts * kPoints * this_.pitch_x, first, m);
                *wrong_ += !this_.stored(group, o + i, some, first, m);
            }
        });
    }

    // m (points, some, width) = weights of outputs times inputs of a strip at each point
    void sums(long some, const float *u, const float *v, long first, float *m) const {
        for (long c = 0; c < channels; c += depth)
            products(some, u + c * kRows, v + c * width, std::min(depth, channels - c), std::min(each, tiles - first), m, c > 0);
    }

    // The same, or what is added to it, of so many channels
    void products(long some, const float *u, const float *v, long steps, long count, float *m, bool add) const {
        for (long p = 0; p < kPoints; ++p)
            for (long i = 0; i < some; i += kRows) {
                const float *a[kRows] = {u + p * pitch_w + i * channels};
                at_point(a, v + p * pitch_x, steps, count, m + p * pitch_y + i * width, add);
            }
    }

    void at_point(const float *const *a, const float *v, long steps, long count, float *m, bool add) const {
        constexpr int L = kLanes<float>;
        if (width == L) tile<float, 1, kByPanels, L>(a, v, steps, m, width, add);
        else if (width == 2 * L) tile<float, 2, kByPanels, 2 * L>(a, v, steps, m, width, add);
        else product<float, kByPanels>(a, v, steps, count, m, width, add);
    }

    // Puts outputs [o, o + some) of a strip where they belong; whether all are finite.
    bool stored(long group, long o, long some, long first, const float *m) const {
        bool finite = true;
        for (long i = 0; i < some; ++i)
            finite &= outputs(m + i * width, y + (group * rows + o + i) * s.length(), first, std::min(each, tiles - first));
        return finite;
    }

    // Weights of outputs [o, o + kRows) at the points: (points, panels, channels, kRows)
    void weights(long group, long o, float *u) const {
        float k[9][kRows], half[18][kRows];
        for (long c = 0; c < channels; ++c, u += kRows) {
            for (int i = 0; i < kRows; ++i) {
                const float *from = w + ((group * rows + std::min(o + i, rows - 1)) * channels + c) * 9;
                for (int t = 0; t < 9; ++t) k[t][i] = from[t];
            }
            for (int j = 0; j < 3; ++j)
#pragma omp simd
                for (int i = 0; i < kRows; ++i) six_of_three(k[j][i], k[3 + j][i], k[6 + j][i], &half[j][i], 3 * kRows);
            for (int j = 0; j < 6; ++j)
#pragma omp simd
                for (int i = 0; i < kRows; ++i)
                    six_of_three(half[3 * j][i], half[3 * j + 1][i], half[3 * j + 2][i], u + 6 * j * pitch_w + i,
                                 pitch_w);
        }
    }

    // One strip of tiles; u: weights at the points, v: room for inputs and outputs there.  Whether all is finite.
    bool strip(long group, long o, long first, const float *u, float *v) const {
        float *m = v + kPoints * pitch_x;
        const long count = std::min(each, tiles - first), some = std::min(block, rows - o);
        for (long c = 0; c < channels; c += depth) {
            const long steps = std::min(depth, channels - c);
            inputs_of(group, c, steps, first, v);
            products(some, u + c * kRows, v, steps, count, m, c > 0);
        }
        return stored(group, o, some, first, m);
    }

    // Puts the tiles of one output channel where they belong; whether all are finite.
    bool outputs(const float *m, float *channel, long first, long count) const {
        float half[24][kTiles], lines[4][4 * kTiles], check = 0;
        for (int j = 0; j < 6; ++j) {
            const float *at = m + j * pitch_y;
            long row = 6 * pitch_y;
#pragma omp simd
            for (long i = 0; i < count; ++i)
                four_of_six(at[i], at[row + i], at[2 * row + i], at[3 * row + i], at[4 * row + i], at[5 * row + i],
                            &half[j][i], 6 * kTiles);
        }
        for (int r = 0; r < 4; ++r) {
            float(*h)[kTiles] = half + 6 * r, *to = lines[r];
#pragma omp simd reduction(+ : check)
            for (long i = 0; i < count; ++i) {
                four_of_six(h[0][i], h[1][i], h[2][i], h[3][i], h[4][i], h[5][i], to + 4 * i, 1);
                check += 0.f * ((to[4 * i] + to[4 * i + 1]) + (to[4 * i + 2] + to[4 * i + 3]));
            }
        }
        each_run(first, count, [&](long image, long row, long tile, long some, long place) {
            float *to = channel + image * s.O * s.length() + 4 * (row * s.out[2] + tile);
            long width = std::min(4 * some, s.out[2] - 4 * tile), height = std::min(4L, s.out[1] - 4 * row);
            for (long r = 0; r < height; ++r)
                std::memcpy(to + r * s.out[2], lines[r] + 4 * place, width * sizeof(float));
        });
        return check == 0;
    }
};

// dw for a block of outputs: sums over strips of tiles, whose inputs and gradients are brought to the points first.
struct WeightGradient : Tiles {
    static constexpr long kSome = kLanes<float>;  // channels that one task brings there
    const float *g, *x;
    float *dw;
    long panel, width, block, pitch_x, pitch_g, pitch_w;  // channels side by side, and all with what fills the last panel

    WeightGradient(const Windows &windows, const float *gradient, const float *from, float *to)
        : Tiles(windows), g(gradient), x(from), dw(to),
          panel(channels > kLanes<float> ? kWide<float> : kLanes<float>), width(ceil_div(channels, panel) * panel),
          block(rows_within(kPoints * (width + kTiles), kPoints * kTiles * width)), pitch_x(width * kTiles + kApart),
          pitch_g(block * kTiles + kApart), pitch_w(block * width + kApart) {}

    long room() const { return kPoints * (pitch_x + pitch_g + pitch_w); }

    bool run() const {
        Scratch<float> scratch(room());
        float *v = scratch.get(), *h = v + kPoints * pitch_x, *m = h + kPoints * pitch_g;
        std::atomic<long> wrong{0};
        for (long group = 0; group < s.G; ++group)
            for (long o = 0; o < rows; o += block) {
                long some = std::min(block, rows - o);
                for (long first = 0; first < tiles; first += kTiles) {
                    long count = std::min(kTiles, tiles - first);
                    to_points(group, o, some, first, count, v, h);
                    sums(v, h, some, count, m, first > 0);
                }
                parallel_for(some, row_grain(kPoints * channels), [=, this_ = *this, wrong_ = &wrong](long begin, long end) {
                    for (long i = begin; i < end; ++i) *wrong_ += !this_.store(m, i, group * this_.rows + o + i);
                });
            }
        return wrong == 0;
    }

  private:
    void to_points(long group, long o, long some, long first, long count, float *v, float *h) const {
        long of_inputs = ceil_div(channels, kSome), of_outputs = ceil_div(some, kRows);
        parallel_tasks(of_inputs + of_outputs, s.work(), [=, this_ = *this](long begin, long end) {
            for (long i = begin; i < end; ++i)
                if (i < of_inputs) this_.inputs_of(group, i * kSome, first, count, v);
                else this_.gradients_of(group, o, (i - of_inputs) * kRows, some, first, count, h);
        });
    }

    // Inputs of kSome channels from c on: (points, panels, tiles, panel)
    void inputs_of(long group, long c, long first, long count, float *v) const {
        float *there = scratch<float, 2>(kPoints * kSome * kTiles);
        long n = std::min(kSome, channels - c);
        for (long i = 0; i < n; ++i)
            inputs(x + (group * channels + c + i) * s.area(), first, count, there + i * kTiles, kSome * kTiles);
        v += c / panel * kTiles * panel + c % panel;
        for (long p = 0; p < kPoints; ++p, there += kSome * kTiles)
            turn<kSome>(there, n, count, v + p * pitch_x, panel);
    }

    // Gradients of kRows outputs from o + i on, 0 past the last: (points, panels, tiles, kRows)
    void gradients_of(long group, long o, long i, long some, long first, long count, float *h) const {
        float *there = scratch<float, 2>(kPoints * kRows * kTiles);
        long n = std::min((long)kRows, some - i);
        for (long r = 0; r < n; ++r)
            gradients(g + (group * rows + o + i + r) * s.length(), first, count, there + r * kTiles, kRows * kTiles);
        for (long p = 0; p < kPoints; ++p, there += kRows * kTiles)
            turn<kRows>(there, n, count, h + p * pitch_g + i * kTiles, kRows);
    }

    // The transpose of from (n, kTiles) as (count, kN), rows `step` numbers apart, 0 from column n on.
    template <long kN> static void turn(const float *from, long n, long count, float *to, long step) {
        for (long t = 0; t < count; ++t, to += step)
            for (long i = 0; i < kN; ++i) to[i] = i < n ? from[i * kTiles + t] : 0;
    }

    void sums(const float *v, const float *h, long some, long count, float *m, bool add) const {
        const long parts = std::min(ceil_div(3L * threads(), kPoints), ceil_div(some, kRows)), few = ceil_div(ceil_div(some, parts), kRows) * kRows;
        parallel_tasks(kPoints * parts, s.work(), [=, this_ = *this](long begin, long end) {
            for (long t = begin; t < end; ++t)
                for (long p = t / parts, i = t % parts * few; i < std::min(some, (t % parts + 1) * few); i += kRows)
                    this_.sums_of(h + p * this_.pitch_g + i * kTiles, v + p * this_.pitch_x, count,
                                  m + p * this_.pitch_w + i * this_.width, add);
        });
    }

    // Those of kRows outputs at one point.
    void sums_of(const float *outputs, const float *inputs, long count, float *to, bool add) const {
        const float *a[kRows] = {outputs};
        if (panel == kLanes<float>) return tile<float, 1, kByPanels, kLanes<float>>(a, inputs, count, to, width, add);
        for (long c = 0; c < channels; c += panel)
            product<float, kByPanels>(a, inputs + c * kTiles, count, channels - c, to + c, width, add);
    }

    // Row i of the sums as the weights' gradients of output o; whether all are finite.
    bool store(const float *m, long i, long o) const {
        constexpr long kOnce = kWide<float>;
        float half[18][kOnce], lines[9][kOnce], check = 0;
        for (long c = 0; c < channels; c += kOnce) {
            long n = std::min(kOnce, channels - c);
            const float *at = m + i * width + c;
            for (int j = 0; j < 6; ++j, at += pitch_w) {
                long row = 6 * pitch_w;
#pragma omp simd
                for (long l = 0; l < n; ++l)
                    three_of_six(at[l], at[row + l], at[2 * row + l], at[3 * row + l], at[4 * row + l], at[5 * row + l],
                                 &half[j][l], 6 * kOnce);
            }
            for (int r = 0; r < 3; ++r) {
                float(*k)[kOnce] = half + 6 * r;
#pragma omp simd
                for (long l = 0; l < n; ++l)
                    three_of_six(k[0][l], k[1][l], k[2][l], k[3][l], k[4][l], k[5][l], &lines[3 * r][l], kOnce);
            }
            float *to = dw + (o * channels + c) * 9;
            for (long l = 0; l < n; ++l)
                for (int t = 0; t < 9; ++t) to[l * 9 + t] = lines[t][l], check += 0.f * lines[t][l];
        }
        return check == 0;
    }
};

template <class Way> long bytes(const Windows &s) {
    if (!Tiles(s).pays()) return 0;
    Way way(s, nullptr, nullptr, nullptr);
    return way.block > 0 ? way.room() * (long)sizeof(float) : 0;
}

template <class Way, class... Operands> bool by_points(const Windows &s, Operands... operands) {
    if (!Tiles(s).pays()) return false;
    Way way(s, operands...);
    return way.block > 0 && way.run();
}

}  // namespace

bool conv_by_points(const Windows &s, const float *x, const float *w, float *y) {
    return by_points<Forward>(s, x, w, y);
}

bool conv_weight_by_points(const Windows &s, const float *g, const float *x, float *dw) {
    return by_points<WeightGradient>(s, g, x, dw);
}

long points_room(const Windows &s) { return bytes<Forward>(s); }
long weight_points_room(const Windows &s) { return bytes<WeightGradient>(s); }

}  // namespace rl
