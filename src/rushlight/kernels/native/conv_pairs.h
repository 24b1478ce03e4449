// Convolutions of bfloat16 images with sums in float32, rounded once: products of pairs of numbers (see pairs.h) without unfolding windows.
//
// Two neighbouring channels of an image, padded, lie side by side in 32 bits.  At one position of the kernel a row of outputs then looks at
// neighbours in memory, a plane's rows one after the other included: what is computed between two rows is left out.  A stride takes every
// second number, and so on, to a plane of its own.  The gradient of the input is such a convolution of the outputs' gradient, one for each
// place between two strides; that of the weight pairs positions instead of channels.
#pragma once
#include <atomic>
#include <limits>

#include "conv_bands.h"
#include "memory.h"

namespace rl {

// Where two factors lie: bytes between rows of pairs, and between the first and second half of them.
struct Strides {
    long a_row, a_next, b_row, b_next;
};
// The blocks of 16 pairs, or fewer, of a sum: bytes from where the factors begin.
struct Term {
    long a, b;
};
constexpr long kSquare = 32, kPairs = 16;  // sums (32, 32) at once, of up to 16 pairs for each block

// Working memory that begins with a line of the cache.
struct Lines {
    Scratch<uint32_t> room;
    explicit Lines(long count) : room(count + 16) {}
    uint32_t *get() const { return reinterpret_cast<uint32_t *>(((uintptr_t)room.get() + 63) / 64 * 64); }
};

// Whether none of the first sums of a row of 32 is infinite or NaN.
RL_WIDE inline bool finite_row(const float *sums, long count) {
    const __m512 most = _mm512_set1_ps(std::numeric_limits<float>::max());
    const auto ends = [&](long c) RL_WIDE {
        return (uint32_t)_mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_loadu_ps(sums + c)), most, _CMP_NLE_UQ) << c;
    };
    return ((ends(0) | ends(16)) & (uint32_t)((1UL << count) - 1)) == 0;
}

// A row of 32 sums, with a number that is added to all unless it is nullptr.
RL_WIDE inline void round_row(const float *sums, const uint16_t *bias, uint16_t *to) {
    for (long c = 0; c < kSquare; c += 16) {
        __m512 x = _mm512_loadu_ps(sums + c);
        if (bias) x = _mm512_add_ps(x, _mm512_castsi512_ps(_mm512_set1_epi32((int)((uint32_t)*bias << 16))));
        _mm256_store_si256(reinterpret_cast<__m256i *>(to + c), rounded(x));
    }
}

// Outputs as one convolution writes them: position (z, y, x) lies at ((z, y, x) * step + from) of an image of `size`.
struct Target {
    uint16_t *data;
    long size[3], step[3], from[3];
    const uint16_t *bias;  // of each channel, or nullptr
    long at(long z, long y, long x) const {
        return ((z * step[0] + from[0]) * size[1] + y * step[1] + from[1]) * size[2] + x * step[2] + from[2];
    }
    long area() const { return size[0] * size[1] * size[2]; }
};

// images (N, G * channels, source) -> (N, G * outputs, target), with weights packed as (G, outputs / 32, taps, blocks of channels, 2, 16, 16).
template <class Engine> struct Correlation {
    const Slide *slide;
    const uint16_t *x;
    const uint32_t *weights;
    Target to;
    long N, G, channels, outputs, taps;
    const int64_t *k;
    long fold = 1, ahead = 1;  // channels that are made of one, and by how much each looks farther ahead than the one before

    long pairs() const { return ceil_div(channels * fold, 2); }
    long deep() const { return std::min(kPairs, pairs()); }  // pairs of a block
    long blocks() const { return ceil_div(pairs(), kPairs); }
    long source() const { return slide[0].size * slide[1].size * slide[2].size; }

    void run() const {
        if (slide[0].count == 0 || slide[1].count == 0 || slide[2].count == 0) return;
        const Bands bands(slide, (1L << 17) / (deep() * blocks()));
        const long strips = ceil_div(outputs, kSquare), items = N * G * bands.count();
        const long cuts = threads() > 1 && items < 2 * threads() ? std::min(strips, ceil_div(2 * threads(), items)) : 1;
        const long wide = ceil_div(strips, cuts);
        parallel_tasks(items * cuts, items * bands.rows * bands.columns * outputs * channels * fold * taps, [&](long begin, long end) {
            typename Engine::ReadyFor ready(deep());
            for (long i = begin; i < end; ++i) {
                const long image = i / cuts / bands.count(), from = i % cuts * wide;
                const Band band = bands.band(i / cuts % bands.count()).inside();
                if (band.rows > 0 && band.columns > 0) some(band, image / G, image % G, from, std::min(strips, from + wide));
            }
        });
    }

    void some(const Band &band, long n, long g, long begin, long end) const {
        const long channel = apart(band.planes() * band.plane() + kSlack, 16);
        uint32_t *pairs_of = scratch<uint32_t, 3>(blocks() * deep() * channel);
        const uint16_t *image = x + (n * G + g) * channels * source();
        for (long p = 0; p < blocks() * deep(); ++p) pair_channel(band, image, p, pairs_of + p * channel);
        std::vector<Term> terms;
        for (size_t d = 0; d < slide[0].taps.size(); ++d)
            for (size_t h = 0; h < slide[1].taps.size(); ++h)
                for (size_t w = 0; w < slide[2].taps.size(); ++w)
                    for (long b = 0; b < blocks(); ++b)
                        terms.push_back({(band.position(d, h, w, k) * blocks() + b) * 2 * kPairs * 64,
                                         (b * kPairs * channel + band.place(d, h, w)) * 4});
        const Strides strides{64, kPairs * 64, channel * 4, 64};
        float *sums = scratch<float, 3>(kSquare * kSquare);
        const long all = ceil_div(outputs, kSquare) * kSquare * taps * blocks() * kPairs;
        for (long strip = begin; strip < end; ++strip) {
            const uint32_t *a = weights + g * all + strip * kSquare * taps * blocks() * kPairs;
            const long o = strip * kSquare, rows = std::min(kSquare, outputs - o);
            for (long q = 0; q < band.count(); q += kSquare) {
                const long columns = std::min(kSquare, band.count() - q);
                Engine::block(a, pairs_of + q, terms.data(), (long)terms.size(), strides, deep(), rows > 16, columns > 16, false, sums);
                write(band, sums, n * G * outputs + g * outputs + o, g * outputs + o, rows, q, columns);
            }
        }
    }

    void pair_channel(const Band &band, const uint16_t *image, long pair, uint32_t *out) const {
        const long first = 2 * pair, there = channels * fold - first;
        const uint16_t *low = image + first / fold * source(), *high = image + (first + 1) / fold * source();
        uint16_t *rows = scratch<uint16_t, 3>(2 * band.pitch());
        band.each_row([&](long at, Row row) {
            if (at < 0 || there < 1) {
                std::fill(out, out + row.count, 0u);
            } else if (fold == 1) {
                pair_row(low + at, there > 1 ? high + at : nullptr, row, out);
            } else {
                single_row(low + at, row.moved(first % fold * ahead), rows);
                if (there > 1) single_row(high + at, row.moved((first + 1) % fold * ahead), rows + row.count);
                pair_row(rows, there > 1 ? rows + row.count : nullptr, {0, 1, row.count, row.count}, out);
            }
            out += row.count;
        });
        std::fill(out, out + kSlack, 0u);
    }

    // Neighbouring positions of a row: from which on, how many, where they lie in a channel of the target.
    struct Run {
        long first, count, at;
    };

    // Those of `columns` positions from q on; how many there are.
    long runs_of(const Band &band, long q, long columns, Run *runs) const {
        const long pitch = band.pitch(), wide = band.columns;
        long found = 0;
        for (long j = 0; j < columns;) {
            const long row = (q + j) / pitch, c = (q + j) % pitch, count = std::min(columns - j, (c < wide ? wide : pitch) - c);
            if (c < wide) runs[found++] = {j, count, to.at(band.z, band.y + row, band.x + c)};
            j += count;
        }
        return found;
    }

    // Rounded sums (rows, columns) of positions from q on to channels of all images from `first` on, whose biases are from `beside` on.
    void write(const Band &band, const float *sums, long first, long beside, long rows, long q, long columns) const {
        alignas(64) uint16_t narrow[kSquare];
        Run runs[kSquare];
        const long count = runs_of(band, q, columns, runs), step = to.step[2];
        for (long r = 0; r < rows; ++r) {
            round_row(sums + r * kSquare, to.bias ? to.bias + beside + r : nullptr, narrow);
            uint16_t *out = to.data + (first + r) * to.area();
            for (long i = 0; i < count; ++i) {
                const uint16_t *from = narrow + runs[i].first;
                if (step == 1) std::memcpy(out + runs[i].at, from, runs[i].count * sizeof *out);
                else
                    for (long j = 0; j < runs[i].count; ++j) out[runs[i].at + j * step] = from[j];
            }
        }
    }
};

// Weights (O, C / G, taps) packed for `Correlation`: rows are outputs and pairs are of channels, or the other way round if `turned`.
struct Weights {
    const uint16_t *w;
    long O, C, G, taps;  // C: of a group; taps: kernel positions, of which each fold of channels has its own
    bool turned;
    long fold = 1;

    long rows() const { return turned ? C : O / G; }
    long steps() const { return turned ? O / G : C * fold; }
    long blocks() const { return ceil_div(ceil_div(steps(), 2), kPairs); }
    long strips() const { return ceil_div(rows(), kSquare); }
    long numbers() const { return G * strips() * taps * blocks() * kSquare * kPairs; }

    void pack(uint32_t *to) const {
        const long each = blocks() * kSquare * kPairs;
        if (turned && taps * fold == 1) return pack_turned(to);
        parallel_for(G * strips() * kSquare, row_grain(steps() * taps), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long g = i / (strips() * kSquare), row = i % (strips() * kSquare);
                uint32_t *out = to + (g * strips() + row / kSquare) * taps * each + row % kSquare * kPairs;
                const uint16_t *from = w + g * (O / G) * C * taps * fold + row * (turned ? 1 : C) * taps * fold;
                if (row < rows() && taps * fold == 1 && !turned) pack_alike(from, out);
                else pack_row(row < rows() ? from : nullptr, out);
            }
        });
    }

    // One kernel position, rows of which lie side by side: 16 of them at a time, so that each line of memory is read once.
    void pack_turned(uint32_t *to) const {
        const long parts = 2 * strips();
        parallel_for(G * parts * blocks(), row_grain(2 * kPairs * kPairs), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long g = i / blocks() / parts, part = i / blocks() % parts, pair = i % blocks() * kPairs;
                pack_square(w + g * (O / G) * C, part * kPairs, pair, to + (g * strips() + part / 2) * blocks() * kSquare * kPairs + pair * kSquare + part % 2 * kPairs * kPairs);
            }
        });
    }

    // 16 rows from `row` on of 16 pairs of steps from `pair` on, zeros where there are none.
    RL_WIDE void pack_square(const uint16_t *from, long row, long pair, uint32_t *to) const {
        const __mmask16 mask = (__mmask16)((1u << std::max(0L, std::min(kPairs, rows() - row))) - 1);
        __m512i v[kPairs];
        for (long k = 0, step = 2 * pair; k < kPairs; ++k, step += 2) {
            const uint16_t *low = from + step * C + row;
            v[k] = step < steps() ? joined(low, step + 1 < steps() ? low + C : nullptr, mask) : _mm512_setzero_si512();
        }
        transpose(v);
        for (long k = 0; k < kPairs; ++k) _mm512_storeu_si512(to + k * kPairs, v[k]);
    }

    // A row whose pairs lie side by side.
    void pack_alike(const uint16_t *from, uint32_t *out) const {
        for (long p = 0; p < blocks() * kPairs; p += kPairs) {
            const long there = std::max(0L, std::min(2 * kPairs, steps() - 2 * p));
            uint32_t *place = out + p * kSquare;
            std::fill(place, place + kPairs, 0u);
            std::memcpy(place, from + 2 * p, there * sizeof *from);
        }
    }

    // A row, or zeros where there is none.
    void pack_row(const uint16_t *from, uint32_t *out) const {
        const long each = blocks() * kSquare * kPairs, step_apart = (turned ? C : 1) * taps * fold;
        const auto at = [&](long step) { return fold == 1 ? step * step_apart : step / fold * step_apart + step % fold; };
        for (long p = 0; p < blocks() * kPairs; ++p) {
            uint32_t *place = out + p / kPairs * kSquare * kPairs + p % kPairs;
            const uint16_t *low = from && 2 * p < steps() ? from + at(2 * p) : nullptr;
            const uint16_t *high = from && 2 * p + 1 < steps() ? from + at(2 * p + 1) : nullptr;
            for (long t = 0; t < taps; ++t) place[t * each] = (low ? low[t * fold] : 0u) | (high ? (uint32_t)high[t * fold] << 16 : 0u);
        }
    }
};

// The weight's gradient: sums over positions, which come in pairs, of images and bands (items), some of which are laid out at a time.
template <class Engine> struct WeightSums {
    const Windows &s;
    const Slide *slide;
    long fold = folds(s), taps = s.taps() / fold;
    long channels = s.C / s.G * fold, outputs = s.O / s.G, wide = ceil_div(channels, kSquare) * kSquare, tall = ceil_div(outputs, kSquare) * kSquare;
    Bands bands{slide, (1L << 18) / wide};
    Band largest = bands.largest();
    long channel = apart(largest.planes() * largest.plane() + kSlack, 32);  // numbers between channels
    long blocks = ceil_div(largest.count(), kSquare);                        // of positions
    long items = s.N * bands.count();
    long image_size = wide * channel / 2, slope_size = blocks * kPairs * tall;  // in 32-bit numbers
    long together = std::max(1L, std::min(items, (1L << 18) / (image_size + slope_size)));
    long sums_size = taps * wide * tall;

    long room() const { return sums_size + together * (image_size + slope_size); }

    // Whether all sums are finite: a number of the image that is not meets zeros between two rows of the outputs' gradient, too.
    bool run(const uint16_t *g, const uint16_t *x, uint16_t *w) const {
        const Lines lines(room());
        auto *sums = reinterpret_cast<float *>(lines.get());
        uint32_t *images = lines.get() + sums_size, *slopes = images + together * image_size;
        for (long group = 0; group < s.G; ++group) {
            for (long first = 0; first < items; first += together) {
                const long some = std::min(together, items - first);
                lay_images(x + group * channels / fold * s.area(), first, some, images);
                lay_slopes(g + group * outputs * s.length(), first, some, slopes);
                add(some, reinterpret_cast<const uint16_t *>(images), slopes, first > 0, sums);
            }
            if (!round(sums, w + group * outputs * channels * taps)) return false;
        }
        return true;
    }

    long image_of(long item) const { return item / bands.count(); }
    Band band(long item) const { return bands.band(item % bands.count()); }

    void lay_images(const uint16_t *x, long first, long some, uint32_t *to) const {
        parallel_for(some * wide, row_grain(channel), [&](long begin, long end) {
            for (long i = begin; i < end; ++i) {
                const long item = i / wide, c = i % wide;
                auto *out = reinterpret_cast<uint16_t *>(to + item * image_size) + c * channel;
                const uint16_t *from = x + (image_of(first + item) * s.C + c / fold) * s.area();
                lay_channel(band(first + item), c < channels ? from : nullptr, c % fold * s.dil[2], out);
            }
        });
    }

    void lay_channel(const Band &here, const uint16_t *from, long ahead, uint16_t *to) const {
        uint16_t *const end = to + channel;
        here.each_row([&](long at, const Row &row) {
            if (from && at >= 0) single_row(from + at, row.moved(ahead), to);
            else std::fill(to, to + row.count, (uint16_t)0);
            to += row.count;
        });
        std::fill(to, end, (uint16_t)0);
    }

    // Gradients of the outputs, 0 between rows and where there are none: (blocks, tall / 16, 16 pairs of positions, 16) for each item.
    void lay_slopes(const uint16_t *g, long first, long some, uint32_t *to) const {
        const long strips = tall / kPairs, length = blocks * kSquare;
        parallel_for(some * strips, row_grain(kPairs * length), [&](long begin, long end) {
            uint16_t *lines = scratch<uint16_t, 3>(kPairs * length);
            for (long i = begin; i < end; ++i) {
                const long item = i / strips, o = i % strips * kPairs;
                lay_lines(band(first + item), g + (image_of(first + item) * s.O + o) * s.length(), std::min(kPairs, outputs - o), lines);
                pair_lines(lines, to + item * slope_size + o * kPairs);
            }
        });
    }

    void lay_lines(const Band &here, const uint16_t *from, long count, uint16_t *lines) const {
        const long length = blocks * kSquare;
        const Band there = here.inside();
        std::fill(lines, lines + kPairs * length, (uint16_t)0);
        for (long o = 0; o < count; ++o)
            for (long r = 0; r < there.rows; ++r) {
                const uint16_t *row = from + o * s.length() + (here.z * s.out[1] + here.y + r) * s.out[2] + here.x;
                std::copy_n(row, std::max(0L, there.columns), lines + o * length + r * here.pitch());
            }
    }

    RL_WIDE void pair_lines(const uint16_t *lines, uint32_t *to) const {
        for (long q = 0; q < blocks; ++q, to += tall * kPairs)
            turned(
                16, [&](int i) RL_WIDE { return _mm512_loadu_si512(lines + (i * blocks + q) * kSquare); },
                [&](int i, __m512i row) RL_WIDE { _mm512_storeu_si512(to + i * 16, row); });
    }

    // sums (taps, wide / 32, tall / 32, 32 channels, 32 outputs) = or += those of some items.
    void add(long some, const uint16_t *images, const uint32_t *slopes, bool more, float *sums) const {
        const long across = wide / kSquare, down = tall / kSquare;
        const Strides strides{channel * 2, 16 * channel * 2, 64, kPairs * 64};
        std::vector<Term> terms;
        for (long item = 0; item < some; ++item)
            for (long q = 0; q < blocks; ++q) terms.push_back({item * image_size * 4 + q * kSquare * 2, (item * slope_size + q * tall * kPairs) * 4});
        parallel_tasks(taps * across * down, taps * wide * tall * (long)terms.size() * kSquare, [&](long begin, long end) {
            typename Engine::ReadyFor ready(kPairs);
            for (long i = begin; i < end; ++i) {
                const long o = i % down * kSquare, c = i / down % across * kSquare, tap = i / down / across;
                const long side = s.k[2] / fold, place = largest.place(tap / side / s.k[1], tap / side % s.k[1], tap % side);
                Engine::block(images + c * channel + place, slopes + o * kPairs, terms.data(), (long)terms.size(), strides, kPairs,
                              channels - c > 16, outputs - o > 16, more, sums + i * kSquare * kSquare);
            }
        });
    }

    // The sums of 32 channels and outputs at a time, turned to (outputs, channels, taps); whether all are finite.
    bool round(const float *sums, uint16_t *w) const {
        const long across = wide / kSquare, down = tall / kSquare;
        std::atomic<bool> finite{true};
        parallel_for(across * down, row_grain(kSquare * kSquare * taps), [&](long begin, long end) {
            uint16_t *block = scratch<uint16_t, 3>(kSquare * kSquare * taps);
            alignas(64) uint16_t narrow[kSquare];
            for (long i = begin; i < end; ++i) {
                const long c = i % across * kSquare, o = i / across * kSquare, some = std::min(kSquare, channels - c);
                for (long t = 0; t < taps; ++t)
                    for (long k = 0; k < some; ++k) {
                        const float *row = sums + ((t * across * down + c / kSquare * down + o / kSquare) * kSquare + k) * kSquare;
                        if (!finite_row(row, std::min(kSquare, outputs - o))) finite = false;
                        round_row(row, nullptr, narrow);
                        for (long r = 0; r < kSquare; ++r) block[(r * some + k) * taps + t] = narrow[r];
                    }
                for (long r = 0; r < std::min(kSquare, outputs - o); ++r) {
                    uint16_t *to = w + (o + r) * channels * taps;
                    const uint16_t *from = block + r * some * taps;
                    if (fold == 1) std::memcpy(to + c * taps, from, some * taps * sizeof *w);
                    else
                        for (long n = 0; n < some * taps; ++n) to[((c + n / taps) / fold * taps + n % taps) * fold + (c + n / taps) % fold] = from[n];
                }
            }
        });
        return finite;
    }
};

template <class Engine> void convolve(const Windows &s, const uint16_t *x, const uint16_t *w, const uint16_t *bias, uint16_t *y) {
    const long fold = folds(s), taps = s.taps() / fold;
    const int64_t k[3] = {s.k[0], s.k[1], s.k[2] / fold};
    const Weights weights{w, s.O, s.C / s.G, s.G, taps, false, fold};
    const Lines packed(weights.numbers());
    weights.pack(packed.get());
    const Slide slide[3] = {along_inputs(s, 0), along_inputs(s, 1), along_inputs(s, 2)};
    const Target to{y, {s.out[0], s.out[1], s.out[2]}, {1, 1, 1}, {0, 0, 0}, bias};
    Correlation<Engine>{slide, x, packed.get(), to, s.N, s.G, s.C / s.G, s.O / s.G, taps, k, fold, s.dil[2]}.run();
}

template <class Engine> void convolve_back(const Windows &s, const uint16_t *g, const uint16_t *w, uint16_t *x) {
    const Weights weights{w, s.O, s.C / s.G, s.G, s.taps(), true};
    const Lines packed(weights.numbers());
    weights.pack(packed.get());
    for (long i = 0; i < s.stride[0] * s.stride[1] * s.stride[2]; ++i) {
        const long from[3] = {i / s.stride[2] / s.stride[1], i / s.stride[2] % s.stride[1], i % s.stride[2]};
        const Slide slide[3] = {along_outputs(s, 0, from[0]), along_outputs(s, 1, from[1]), along_outputs(s, 2, from[2])};
        const Target to{x, {s.in[0], s.in[1], s.in[2]}, {s.stride[0], s.stride[1], s.stride[2]}, {from[0], from[1], from[2]}, nullptr};
        Correlation<Engine>{slide, g, packed.get(), to, s.N, s.G, s.O / s.G, s.C / s.G, s.taps(), s.k}.run();
    }
}

// x (N, C, *in), w (O, C / G, *k), bias (O) or None -> y (N, O, *out)
template <class Engine> void convolve_all(Array *x_, Array *w_, Array *bias_, Array *y_, Array *windows) {
    Call call("conv");
    Windows s(call, windows);
    call.expect(s.countable(), "sizes that are counted in 32 bits");
    const auto *x = call.in<uint16_t>("input", x_, s.count("input")), *w = call.in<uint16_t>("weight", w_, s.count("weight"));
    const auto *bias = call.maybe_in<uint16_t>("bias", bias_, s.O);
    auto *y = call.out<uint16_t>("output", y_, s.count("output"));
    call.run([&] { convolve<Engine>(s, x, w, bias, y); });
}

template <class Engine> void convolve_back_all(Array *g_, Array *w_, Array *x_, Array *windows) {
    Call call("conv_input");
    Windows s(call, windows);
    call.expect(s.countable(), "sizes that are counted in 32 bits");
    const auto *g = call.in<uint16_t>("output", g_, s.count("output")), *w = call.in<uint16_t>("weight", w_, s.count("weight"));
    auto *x = call.out<uint16_t>("input", x_, s.count("input"));
    call.run([&] { convolve_back<Engine>(s, g, w, x); });
}

template <class Engine> long sum_weights_all(Array *g_, Array *x_, Array *w_, Array *windows) {
    Call call("conv_weight");
    Windows s(call, windows);
    call.expect(s.countable(), "sizes that are counted in 32 bits");
    const auto *g = call.in<uint16_t>("output", g_, s.count("output")), *x = call.in<uint16_t>("input", x_, s.count("input"));
    auto *w = call.out<uint16_t>("weight", w_, s.count("weight"));
    bool finite = false;
    call.run([&] {
        const Slide slide[3] = {along_inputs(s, 0), along_inputs(s, 1), along_inputs(s, 2)};
        finite = WeightSums<Engine>{s, slide}.run(g, x, w);
    });
    return finite;
}

// Bytes that the product, its adjoint in x ("i") or in w ("w") takes for itself.
template <class Engine> long conv_room_all(Array *windows, int of) {
    Call call("conv_room");
    Windows s(call, windows);
    long bytes = 0;
    call.run([&] {
        const Slide slide[3] = {along_inputs(s, 0), along_inputs(s, 1), along_inputs(s, 2)};
        const bool turned = (char)of == 'i';
        const long fold = turned ? 1 : folds(s);
        const Weights weights{nullptr, s.O, s.C / s.G, s.G, s.taps() / fold, turned, fold};
        bytes = 4 * ((char)of == 'w' ? WeightSums<Engine>{s, slide}.room() : weights.numbers());
    });
    return bytes;
}

}  // namespace rl

#define RL_CONVOLUTIONS(ENGINE, SUFFIX)                                                                                       \
    RL_EXPORT void rl_conv##SUFFIX(Array *x, Array *w, Array *bias, Array *y, Array *windows) {                                \
        rl::convolve_all<ENGINE>(x, w, bias, y, windows);                                                                      \
    }                                                                                                                          \
    RL_EXPORT void rl_conv_input##SUFFIX(Array *g, Array *w, Array *x, Array *windows) {                                       \
        rl::convolve_back_all<ENGINE>(g, w, x, windows);                                                                       \
    }                                                                                                                          \
    RL_EXPORT long rl_conv_weight##SUFFIX(Array *g, Array *x, Array *w, Array *windows) {                                      \
        return rl::sum_weights_all<ENGINE>(g, x, w, windows);                                                                  \
    }                                                                                                                          \
    RL_EXPORT long rl_conv_room##SUFFIX(Array *windows, int of) { return rl::conv_room_all<ENGINE>(windows, of); }
