// Bytes in as few bits as their frequency asks for, and words without those that are 0: saved numbers in less memory, exactly.
//
// Signs and exponents of numbers repeat, what follows them hardly does: of the planes of an array (all first bytes of its elements,
// all second ones, ...) some are worth a code, the others lie as they are.  Each chunk of a plane has a code of its own (Huffman,
// 1952) of at most kLongest bits, so that a table finds a byte with one look, and is written as four streams, which are
// read in turns: each waits for its table while the others go on.
#include <algorithm>
#include <numeric>
#include <vector>

#include "common.h"

namespace rl {
namespace {

constexpr long kChunk = 32768;  // elements
constexpr int kStreams = 4;
constexpr int kLongest = 11;    // bits of a code
constexpr uint8_t kAlone = 255; // in place of a length: the only byte of its chunk, which takes no bits
constexpr long kSlack = 8;      // bytes behind the last stream, so that whole words can be read
constexpr int kBytes = 256;

template <class T> struct Packed { T value; } __attribute__((packed, may_alias));

template <class T> const Packed<T> *as(const uint8_t *data) { return reinterpret_cast<const Packed<T> *>(data); }
template <class T> Packed<T> *as(uint8_t *data) { return reinterpret_cast<Packed<T> *>(data); }

RL_INLINE uint64_t word_at(const uint8_t *at) {
    uint64_t found;
    std::memcpy(&found, at, sizeof found);
    return found;
}

long quarter(long count) { return ceil_div(count, kStreams); }
long share(long count, int stream) { return std::max(0L, std::min(quarter(count), count - stream * quarter(count))); }

using Counts = uint32_t[kStreams][kBytes];

void counted(const uint8_t *plane, long count, Counts &found) {
    std::memset(found, 0, sizeof found);
    const long q = quarter(count), all = share(count, kStreams - 1);
    for (long i = 0; i < all; ++i)
#pragma GCC unroll 4
        for (int s = 0; s < kStreams; ++s) ++found[s][plane[s * q + i]];
    for (int s = 0; s < kStreams; ++s)
        for (long i = all; i < share(count, s); ++i) ++found[s][plane[s * q + i]];
}

// How many codes there are of each length, for frequencies in descending order: at most kLongest long.  What is longer is
// shortened as JPEG does it (ITU-T T.81, K.3): a pair moves up, beside a shorter code that gets a bit.
void spread_lengths(const std::vector<uint64_t> &frequencies, int (&of_length)[kBytes + 1]) {
    const int n = (int)frequencies.size();
    std::vector<uint64_t> weight(frequencies.rbegin(), frequencies.rend());
    std::vector<int> above(2 * n, 0);
    int leaf = 0, node = n;
    const auto lightest = [&] {
        return leaf < n && (node >= (int)weight.size() || weight[leaf] <= weight[node]) ? leaf++ : node++;
    };
    for (int k = n; k < 2 * n - 1; ++k) {
        const int a = lightest(), b = lightest();
        weight.push_back(weight[a] + weight[b]);
        above[a] = above[b] = k;
    }
    std::vector<int> depth(2 * n, 0);
    for (int k = 2 * n - 3; k >= 0; --k) depth[k] = depth[above[k]] + 1;
    for (int k = 0; k < n; ++k) ++of_length[depth[k]];
    for (int length = kBytes; length > kLongest; --length)
        while (of_length[length]) {
            int shorter = length - 2;
            while (!of_length[shorter]) --shorter;
            of_length[length] -= 2;
            ++of_length[length - 1];
            of_length[shorter + 1] += 2;
            --of_length[shorter];
        }
}

// The length of each byte's code, 0 for bytes that do not occur.
void find_lengths(const Counts &counts, uint8_t *lengths) {
    uint64_t total[kBytes];
    std::vector<int> there;
    for (int b = 0; b < kBytes; ++b) {
        total[b] = 0;
        for (int s = 0; s < kStreams; ++s) total[b] += counts[s][b];
        if (total[b]) there.push_back(b);
    }
    std::memset(lengths, 0, kBytes);
    if (there.size() < 2) {
        if (!there.empty()) lengths[there[0]] = kAlone;
        return;
    }
    std::stable_sort(there.begin(), there.end(), [&](int a, int b) { return total[a] > total[b]; });
    std::vector<uint64_t> frequencies;
    for (int b : there) frequencies.push_back(total[b]);
    int of_length[kBytes + 1] = {}, next = 0;
    spread_lengths(frequencies, of_length);
    for (int length = 1; length <= kLongest; ++length)
        for (int k = 0; k < of_length[length]; ++k) lengths[there[next++]] = (uint8_t)length;
}

uint32_t turned(uint32_t code, int length) {
    uint32_t found = 0;
    for (int k = 0; k < length; ++k) found |= (code >> k & 1) << (length - 1 - k);
    return found;
}

// f(byte, code, length) of each byte: codes of a length follow each other, after all shorter ones; the first bit is the lowest.  Whether
// the lengths are those of a code that leaves no bits over.
template <class F> bool for_codes(const uint8_t *lengths, F f) {
    uint32_t code = 0;
    for (int length = 1; length <= kLongest; ++length, code <<= 1)
        for (int b = 0; b < kBytes; ++b)
            if (lengths[b] == length) {
                if (code >> length) return false;
                f(b, turned(code++, length), length);
            }
    return code == 2u << kLongest;
}

bool alone(const uint8_t *lengths) { return std::find(lengths, lengths + kBytes, kAlone) != lengths + kBytes; }

void write_stream(const uint8_t *from, long count, const uint32_t *codes, uint8_t *to, const uint8_t *end) {
    uint64_t bits = 0;
    int held = 0;
    const auto put = [&](uint8_t byte) {
        bits |= (uint64_t)(codes[byte] >> 8) << held;
        held += (int)(codes[byte] & 255);
    };
    const auto flush = [&] {  // whole bytes; what is written beyond them is written again
        if (end - to >= 8) std::memcpy(to, &bits, 8);
        else std::memcpy(to, &bits, (size_t)(end - to));
        to += held >> 3;
        bits >>= held & ~7;
        held &= 7;
    };
    long i = 0;
    for (; i + 4 <= count; i += 4) {
        put(from[i]), put(from[i + 1]), put(from[i + 2]), put(from[i + 3]);
        flush();
    }
    for (; i < count; ++i) put(from[i]);
    held += 7;
    flush();
}

struct Stream {
    const uint8_t *from;
    uint64_t end;  // bits
    uint8_t *to;
    long count;
};

// `kMany` bytes of a stream: as many as a word holds whatever their codes are.  Where the stream is read next: one bit behind its end if
// it does not reach so far, which is told afterwards.
constexpr int kMany = 5;
template <int many> RL_INLINE uint64_t read_some(const Stream &s, const uint16_t *table, long i, uint64_t at) {
    uint64_t bits = word_at(s.from + (at >> 3)) >> (at & 7);
    uint8_t *to = s.to + i;
#pragma GCC unroll 5
    for (int k = 0; k < many; ++k) {
        const uint64_t found = table[bits & ((1 << kLongest) - 1)], length = found >> 8;
        to[k] = (uint8_t)found;
        bits >>= length;
        at += length;
    }
    return std::min(at, s.end + 1);
}

bool read_streams(const Stream (&streams)[kStreams], const uint8_t *lengths) {
    uint16_t table[1 << kLongest];
    const bool whole = for_codes(lengths, [&](int byte, uint32_t code, int length) {
        for (uint32_t k = code; k < 1u << kLongest; k += 1u << length) table[k] = (uint16_t)(byte | length << 8);
    });
    if (!whole) return false;
    const Stream a = streams[0], b = streams[1], c = streams[2], d = streams[3];
    uint64_t at[kStreams], in_a = 0, in_b = 0, in_c = 0, in_d = 0;
    long i = 0;
    for (; i + kMany <= d.count; i += kMany) {
        in_a = read_some<kMany>(a, table, i, in_a);
        in_b = read_some<kMany>(b, table, i, in_b);
        in_c = read_some<kMany>(c, table, i, in_c);
        in_d = read_some<kMany>(d, table, i, in_d);
    }
    at[0] = in_a, at[1] = in_b, at[2] = in_c, at[3] = in_d;
    for (int s = 0; s < kStreams; ++s) {
        for (long k = i; k < streams[s].count; ++k) at[s] = read_some<1>(streams[s], table, k, at[s]);
        if (at[s] > streams[s].end || at[s] + 8 <= streams[s].end) return false;
    }
    return true;
}

// What all of a call knows: `coded` of an element's bytes have codes, the lowest bit says so of the first.
struct Planes {
    long count, width;
    uint64_t mask;
    long chunks() const { return ceil_div(count, kChunk); }
    long coded() const { return __builtin_popcountll(mask); }
    long size(long chunk) const { return std::min(kChunk, count - chunk * kChunk); }
    bool is_coded(long plane) const { return mask >> plane & 1; }
};

// Those of widths that are a type's; else none, which every array contradicts.
Planes planes_of(long count, long width, uint64_t mask) {
    const bool known = (width == 1 || width == 2 || width == 4 || width == 8) && !(mask >> width);
    return known ? Planes{count, width, mask} : Planes{-1, width, 0};
}

template <class F> void with_width(long width, F f) {
    if (width == 1) f(uint8_t());
    else if (width == 2) f(uint16_t());
    else if (width == 4) f(uint32_t());
    else f(uint64_t());
}

template <class T> void taken(const Packed<T> *__restrict from, long count, int shift, uint8_t *__restrict to) {
    for (long i = 0; i < count; ++i) to[i] = (uint8_t)(from[i].value >> shift);
}

void taken(const uint8_t *data, const Planes &planes, long chunk, long plane, uint8_t *to) {
    with_width(planes.width, [&](auto kind) {
        taken(as<decltype(kind)>(data) + chunk * kChunk, planes.size(chunk), 8 * (int)plane, to);
    });
}

// Elements of their bytes: two planes at a time, of which the pairs are planes of twice the width.
template <class T, class Half> void paired(const Half *__restrict low, const Half *__restrict high, long count, Packed<T> *__restrict to) {
    for (long i = 0; i < count; ++i) to[i].value = (T)(low[i] | (T)high[i] << 4 * sizeof(T));
}

void joined(const uint8_t *const *from, long count, uint8_t *to) { std::memcpy(to, from[0], (size_t)count); }
void joined(const uint8_t *const *from, long count, uint16_t *to) { paired(from[0], from[1], count, (Packed<uint16_t> *)to); }
template <class T> void joined(const uint8_t *const *from, long count, T *to) {
    using Half = std::conditional_t<sizeof(T) == 4, uint16_t, uint32_t>;
    constexpr long kSome = 512;
    Half low[kSome], high[kSome];
    const uint8_t *at[sizeof(T)];
    for (long i = 0; i < count; i += kSome) {
        const long n = std::min(kSome, count - i);
        for (size_t k = 0; k < sizeof(T); ++k) at[k] = from[k] + i;
        joined(at, n, low);
        joined(at + sizeof(T) / 2, n, high);
        paired(low, high, n, (Packed<T> *)to + i);
    }
}

// Where the streams of each chunk begin, and behind them the end of the last.
std::vector<long> starts(const Planes &planes, const uint32_t *sizes) {
    const long each = planes.coded() * kStreams;
    std::vector<long> found(planes.chunks() + 1, 0);
    for (long c = 0; c < planes.chunks(); ++c) found[c + 1] = std::accumulate(sizes + c * each, sizes + (c + 1) * each, found[c]);
    return found;
}

long plan(const uint8_t *data, const Planes &planes, uint8_t *lengths, uint32_t *sizes) {
    parallel_for(planes.chunks(), 1, [&](long begin, long end) {
        uint8_t plane[kChunk];
        Counts counts;
        for (long c = begin; c < end; ++c)
            for (long k = 0, j = c * planes.coded(); k < planes.width; ++k) {
                if (!planes.is_coded(k)) continue;
                taken(data, planes, c, k, plane);
                counted(plane, planes.size(c), counts);
                find_lengths(counts, lengths + j * kBytes);
                for (int s = 0; s < kStreams; ++s) {
                    uint64_t bits = 0;
                    for (int b = 0; b < kBytes; ++b) bits += (uint64_t)counts[s][b] * (lengths[j * kBytes + b] % kAlone);
                    sizes[j * kStreams + s] = (uint32_t)((bits + 7) / 8);
                }
                ++j;
            }
    });
    return starts(planes, sizes).back() + kSlack;
}

void pack_plane(const uint8_t *plane, long count, const uint8_t *lengths, const uint32_t *sizes, uint8_t *to, const uint8_t *end) {
    uint32_t codes[kBytes] = {};  // with their lengths in the lowest byte
    for_codes(lengths, [&](int byte, uint32_t code, int length) { codes[byte] = code << 8 | (uint32_t)length; });
    for (int s = 0; s < kStreams; to += sizes[s++])
        if (sizes[s]) write_stream(plane + s * quarter(count), share(count, s), codes, to, end);
}

void pack(const uint8_t *data, const Planes &planes, const uint8_t *lengths, const uint32_t *sizes, uint8_t *coded, uint8_t *plain) {
    const auto from = starts(planes, sizes);
    std::memset(coded + from.back(), 0, kSlack);
    parallel_for(planes.chunks(), 1, [&](long begin, long end) {
        uint8_t plane[kChunk];
        for (long c = begin; c < end; ++c) {
            uint8_t *to = coded + from[c];
            for (long k = 0, j = c * planes.coded(), raw = 0; k < planes.width; ++k) {
                if (!planes.is_coded(k)) {
                    taken(data, planes, c, k, plain + planes.count * raw++ + c * kChunk);
                    continue;
                }
                taken(data, planes, c, k, plane);
                pack_plane(plane, planes.size(c), lengths + j * kBytes, sizes + j * kStreams, to, coded + from[c + 1]);
                to = std::accumulate(sizes + j * kStreams, sizes + (j + 1) * kStreams, to);
                ++j;
            }
        }
    });
}

bool unpack_plane(const uint8_t *from, const uint32_t *sizes, const uint8_t *lengths, long count, uint8_t *to) {
    if (alone(lengths)) {
        std::memset(to, (int)(std::find(lengths, lengths + kBytes, kAlone) - lengths), (size_t)count);
        return true;
    }
    Stream streams[kStreams];
    for (int s = 0; s < kStreams; from += sizes[s++])
        streams[s] = {from, 8 * (uint64_t)sizes[s], to + s * quarter(count), share(count, s)};
    return read_streams(streams, lengths);
}

// The first chunk whose bits are none that `pack` writes; -1 where there is none.
long unpack(const uint8_t *coded, long size, const Planes &planes, const uint8_t *lengths, const uint32_t *sizes, const uint8_t *plain, uint8_t *data) {
    const auto from = starts(planes, sizes);
    if (from.back() + kSlack != size) return 0;
    std::vector<long> wrong(planes.chunks(), -1);
    parallel_for(planes.chunks(), 1, [&](long begin, long end) {
        std::vector<uint8_t> decoded(planes.coded() * kChunk);
        const uint8_t *found[8];
        for (long c = begin; c < end; ++c) {
            const uint8_t *at = coded + from[c];
            for (long k = 0, j = 0, raw = 0; k < planes.width; ++k) {
                if (!planes.is_coded(k)) {
                    found[k] = plain + planes.count * raw++ + c * kChunk;
                    continue;
                }
                const long all = c * planes.coded() + j;
                uint8_t *to = decoded.data() + j++ * kChunk;
                if (!unpack_plane(at, sizes + all * kStreams, lengths + all * kBytes, planes.size(c), to)) wrong[c] = c;
                at = std::accumulate(sizes + all * kStreams, sizes + (all + 1) * kStreams, at);
                found[k] = to;
            }
            with_width(planes.width, [&](auto kind) {
                joined(found, planes.size(c), (decltype(kind) *)(data + c * kChunk * planes.width));
            });
        }
    });
    for (long c : wrong)
        if (c >= 0) return c;
    return -1;
}

// Words that are not 0 ------------------------------------------------------------------------------------------------------------

constexpr long kBits = 8;

// Bits of eight words.
template <class T> RL_INLINE uint8_t there(const Packed<T> *from) {
    typedef T Words __attribute__((vector_size(kBits * sizeof(T)), aligned(1), may_alias));
    const Words each = {1, 2, 4, 8, 16, 32, 64, 128};
    const Words found = (Words)(*reinterpret_cast<const Words *>(from) != 0) & each;
    uint8_t bits = 0;
    for (int i = 0; i < kBits; ++i) bits |= (uint8_t)found[i];
    return bits;
}

// A bit for each word that is not 0, the first the lowest; how many there are.
template <class T> long find_words(const Packed<T> *from, long count, uint8_t *bits) {
    parallel_for(count / kBits, kChunk / kBits, [&](long begin, long end) {
        for (long b = begin; b < end; ++b) bits[b] = there(from + b * kBits);
    });
    if (count % kBits) {
        Packed<T> last[kBits] = {};
        std::copy(from + count / kBits * kBits, from + count, last);
        bits[count / kBits] = there(last);
    }
    long found = 0;
    for (long b = 0; b < ceil_div(count, kBits); ++b) found += __builtin_popcount(bits[b]);
    return found;
}

// f(chunk, words of earlier chunks, its own), by several threads.
template <class F> void for_chunks(const uint8_t *bits, long count, F f) {
    const long chunks = ceil_div(count, kChunk), bytes = ceil_div(count, kBits);
    std::vector<long> before(chunks + 1, 0);
    for (long c = 0; c < chunks; ++c) {
        before[c + 1] = before[c];
        for (long b = c * kChunk / kBits; b < std::min(bytes, (c + 1) * kChunk / kBits); ++b) before[c + 1] += __builtin_popcount(bits[b]);
    }
    parallel_for(chunks, 1, [&](long begin, long end) {
        for (long c = begin; c < end; ++c) f(c, before[c], before[c + 1]);
    });
}

// Eight at a time, without a branch: each goes where the next one goes if it is 0.  (Behind the last that is not, nothing may be written.)
template <class T> void squeeze(const Packed<T> *__restrict from, long count, const uint8_t *__restrict bits, Packed<T> *__restrict to) {
    for_chunks(bits, count, [&](long chunk, long next, long end) {
        long i = chunk * kChunk;
        for (; next + kBits <= end; i += kBits) {
            const unsigned there = bits[i / kBits];
#pragma GCC unroll 8
            for (int k = 0; k < kBits; ++k) {
                to[next].value = from[i + k].value;
                next += there >> k & 1;
            }
        }
        for (; next < end; ++i)
            if (bits[i / kBits] >> i % kBits & 1) to[next++].value = from[i].value;
    });
}

template <class T> void spread(const Packed<T> *__restrict from, long count, const uint8_t *__restrict bits, Packed<T> *__restrict to) {
    for_chunks(bits, count, [&](long chunk, long next, long end) {
        const long last = std::min(count, (chunk + 1) * kChunk);
        long i = chunk * kChunk;
        for (; next + kBits < end; i += kBits) {
            const unsigned there = bits[i / kBits];
#pragma GCC unroll 8
            for (int k = 0; k < kBits; ++k) {
                const unsigned is = there >> k & 1;
                to[i + k].value = (T)(from[next].value & (T)((T)0 - (T)is));
                next += is;
            }
        }
        for (; i < last; ++i) to[i].value = bits[i / kBits] >> i % kBits & 1 ? from[next++].value : (T)0;
    });
}

}  // namespace
}  // namespace rl

RL_EXPORT long rl_plan_codes_bytes(Array *data_, long count, long width, uint64_t mask, Array *lengths_, Array *sizes_) {
    rl::Call call("plan_codes");
    const rl::Planes planes = rl::planes_of(count, width, mask);
    const uint8_t *data = call.in<uint8_t>("data", data_, planes.count, width);
    uint8_t *lengths = call.out<uint8_t>("lengths", lengths_, planes.chunks(), planes.coded(), (long)rl::kBytes);
    uint32_t *sizes = call.out<uint32_t>("sizes", sizes_, planes.chunks(), planes.coded(), (long)rl::kStreams);
    long found = 0;
    call.run([&] { found = rl::plan(data, planes, lengths, sizes); });
    return found;
}

RL_EXPORT void rl_pack_codes_bytes(Array *data_, long count, long width, uint64_t mask, Array *lengths_, Array *sizes_, Array *coded_, Array *plain_) {
    rl::Call call("pack_codes");
    const rl::Planes planes = rl::planes_of(count, width, mask);
    const uint8_t *data = call.in<uint8_t>("data", data_, planes.count, width);
    const uint8_t *lengths = call.in<uint8_t>("lengths", lengths_, planes.chunks(), planes.coded(), (long)rl::kBytes);
    const uint32_t *sizes = call.in<uint32_t>("sizes", sizes_, planes.chunks(), planes.coded(), (long)rl::kStreams);
    long size = sizes ? rl::starts(planes, sizes).back() + rl::kSlack : 0;
    uint8_t *coded = call.out<uint8_t>("coded", coded_, size);
    uint8_t *plain = call.out<uint8_t>("plain", plain_, width - planes.coded(), count);
    call.run([&] { rl::pack(data, planes, lengths, sizes, coded, plain); });
}

RL_EXPORT long rl_unpack_codes_bytes(Array *coded_, long size, long count, long width, uint64_t mask, Array *lengths_, Array *sizes_, Array *plain_, Array *data_) {
    rl::Call call("unpack_codes");
    const rl::Planes planes = rl::planes_of(count, width, mask);
    const uint8_t *coded = call.in<uint8_t>("coded", coded_, size);
    const uint8_t *lengths = call.in<uint8_t>("lengths", lengths_, planes.chunks(), planes.coded(), (long)rl::kBytes);
    const uint32_t *sizes = call.in<uint32_t>("sizes", sizes_, planes.chunks(), planes.coded(), (long)rl::kStreams);
    const uint8_t *plain = call.in<uint8_t>("plain", plain_, width - planes.coded(), count);
    uint8_t *data = call.out<uint8_t>("data", data_, planes.count, width);
    long found = 0;
    call.run([&] { found = rl::unpack(coded, size, planes, lengths, sizes, plain, data); });
    return found;
}

RL_EXPORT long rl_find_words_bytes(Array *data_, long count, long width, Array *bits_) {
    rl::Call call("find_words");
    const rl::Planes planes = rl::planes_of(count, width, 0);
    const uint8_t *data = call.in<uint8_t>("data", data_, planes.count, width);
    uint8_t *bits = call.out<uint8_t>("bits", bits_, rl::ceil_div(count, rl::kBits));
    long found = 0;
    call.run([&] {
        rl::with_width(width, [&](auto kind) { found = rl::find_words(rl::as<decltype(kind)>(data), count, bits); });
    });
    return found;
}

RL_EXPORT void rl_squeeze_words_bytes(Array *data_, long count, long width, Array *bits_, Array *words_, long many) {
    rl::Call call("squeeze_words");
    const rl::Planes planes = rl::planes_of(count, width, 0);
    const uint8_t *data = call.in<uint8_t>("data", data_, planes.count, width);
    const uint8_t *bits = call.in<uint8_t>("bits", bits_, rl::ceil_div(count, rl::kBits));
    uint8_t *words = call.out<uint8_t>("words", words_, many, width);
    call.run([&] {
        rl::with_width(width, [&](auto kind) {
            using T = decltype(kind);
            rl::squeeze(rl::as<T>(data), count, bits, rl::as<T>(words));
        });
    });
}

RL_EXPORT void rl_spread_words_bytes(Array *words_, long many, long count, long width, Array *bits_, Array *data_) {
    rl::Call call("spread_words");
    const rl::Planes planes = rl::planes_of(count, width, 0);
    const uint8_t *words = call.in<uint8_t>("words", words_, many, width);
    const uint8_t *bits = call.in<uint8_t>("bits", bits_, rl::ceil_div(count, rl::kBits));
    uint8_t *data = call.out<uint8_t>("data", data_, planes.count, width);
    call.run([&] {
        rl::with_width(width, [&](auto kind) {
            using T = decltype(kind);
            rl::spread(rl::as<T>(words), count, bits, rl::as<T>(data));
        });
    });
}
