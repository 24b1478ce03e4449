// The allocator under NumPy's arrays (NumPy enhancement proposal 49): malloc, with every byte counted.
//
// Counting costs a few additions; a table holds the large blocks that are alive.  While recording, every birth and
// death goes into a ring with the Python stack that led to it, and the table holds the small blocks too.  While a limit
// is set, an allocation that would pass it asks a Python function to make room first.
#include "memory.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "common.h"
#include "spare.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace rl {
namespace {

// Totals -------------------------------------------------------------------------------------------------------

struct Totals {
    std::atomic<int64_t> bytes{0}, peak{0};
} totals;
std::atomic<int64_t> adopted{0};  // blocks from before this allocator

// What need not be exact at every moment is counted by each thread for itself: an addition that all threads see at once
// takes 20 cycles, and a small array has few hundred.  What a thread leaves behind, the next one goes on with.
struct Tally {
    std::atomic<int64_t> born{0}, born_bytes{0}, dead{0};
    std::atomic<bool> taken{true};
    Tally *next = nullptr;
};
std::atomic<Tally *> tallies{nullptr};
thread_local Tally *tally = nullptr;

struct Seat {
    ~Seat() {
        if (tally) tally->taken.store(false, std::memory_order_release);
        tally = nullptr;
    }
};

Tally &sit_down() {
    static thread_local Seat seat;
    (void)seat;
    for (Tally *t = tallies.load(); t; t = t->next)
        if (!t->taken.load(std::memory_order_relaxed) && !t->taken.exchange(true)) return *(tally = t);
    tally = new Tally();
    tally->next = tallies.load();
    while (!tallies.compare_exchange_weak(tally->next, tally)) {
    }
    return *tally;
}

Tally &mine() { return tally ? *tally : sit_down(); }

void add(std::atomic<int64_t> &own, int64_t more) {
    own.store(own.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

enum Flags { kRecording = 1, kLimited = 2, kExact = 4, kAside = 8 };
std::atomic<int> flags{0};

bool is(Flags which) { return flags.load(std::memory_order_relaxed) & which; }

void raise_peak(int64_t bytes) {
    int64_t peak = totals.peak.load(std::memory_order_relaxed);
    while (bytes > peak && !totals.peak.compare_exchange_weak(peak, bytes, std::memory_order_relaxed)) {
    }
}

// Bytes counted before they are allocated, so that threads that allocate at once do not pass a limit together.
void count(int64_t bytes) {
    raise_peak(totals.bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

bool count_below(int64_t bytes, int64_t most) {
    int64_t now = totals.bytes.load(std::memory_order_relaxed);
    do {
        if (now + bytes > most) return false;
    } while (!totals.bytes.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
    raise_peak(now + bytes);
    return true;
}

// Python ---------------------------------------------------------------------------------------------------------

// The few functions of Python that reading a stack takes; given by address, so that no headers are needed.
struct Python {
    int (*held)();                // PyGILState_Check
    void *(*frame)();             // PyEval_GetFrame: borrowed
    void *(*back)(void *);        // PyFrame_GetBack: new
    void *(*code)(void *);        // PyFrame_GetCode: new
    int (*position)(void *);      // PyFrame_GetLasti
    void (*take)(void *);         // Py_IncRef
    void (*drop)(void *);         // Py_DecRef
    int (*pause)();               // PyGC_Disable: whether it was on
    int (*resume)();              // PyGC_Enable
    int (*ensure)();              // PyGILState_Ensure
    void (*release)(int);         // PyGILState_Release
} python;

bool gil() { return python.held && python.held(); }

// Recording --------------------------------------------------------------------------------------------------------

enum Action : uint8_t { kAlloc, kFree, kCategory, kPhase, kMark };

struct Block {
    int64_t number = -1;
    int64_t size = 0;
    int32_t stack = -1, label = -1;
    uint8_t category = 0;
};

struct Event {
    int64_t time, block, address, size, value;
    int32_t stack, label;
    uint32_t thread;
    uint8_t action, category;
    uint8_t unused[2];
};

struct Line {
    void *code;
    int position;
    bool operator==(const Line &o) const { return code == o.code && position == o.position; }
};

struct Hash {
    size_t operator()(const std::vector<Line> &lines) const {
        uint64_t h = 1469598103934665603ull;
        for (const Line &l : lines) h = (h ^ (reinterpret_cast<uint64_t>(l.code) + uint64_t(l.position) * 0x9E3779B97F4A7C15ull)) * 1099511628211ull;
        return h;
    }
};

struct Recorder {
    std::mutex lock;
    Event *ring = nullptr;  // zeroed by the system: what is never written takes no memory
    uint64_t room = 0;      // events in it

    void resize(uint64_t events) {
        std::free(ring);
        ring = events ? static_cast<Event *>(std::calloc(events, sizeof(Event))) : nullptr;
        room = ring ? events : 0;
    }
    uint64_t written = 0;  // events so far; the ring holds the last of them
    int64_t numbers = 0;   // blocks so far
    std::unordered_map<void *, Block> alive;
    std::vector<Event> left;  // what was alive when the recording stopped
    std::unordered_map<std::vector<Line>, int32_t, Hash> stacks;
    std::vector<const std::vector<Line> *> order;
    int depth = 0;
    uint32_t threads = 0;
};
Recorder *recorder = new Recorder();  // never destroyed: arrays die after static destructors have run

thread_local uint32_t thread_number = 0;
thread_local bool inside = false;  // in the recorder itself
thread_local bool making = false;  // in the function that makes room
thread_local bool aside = false;   // what this thread makes is about the recording, and no part of it
std::atomic<int> asides{0};

int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

uint32_t this_thread(Recorder &r) {
    if (!thread_number) thread_number = ++r.threads;
    return thread_number;
}

// The stack that is running, innermost first, by number.  The GIL is held; the collector rests, for what it would run
// must not find an array half made.
int32_t stack(Recorder &r) {
    static thread_local std::vector<Line> lines;
    lines.clear();
    int on = python.pause();
    void *frame = python.frame();
    if (frame) python.take(frame);
    while (frame && int(lines.size()) < r.depth) {
        void *code = python.code(frame), *outer = python.back(frame);
        lines.push_back({code, python.position(frame)});
        python.drop(code);  // the frame keeps it
        python.drop(frame);
        frame = outer;
    }
    if (frame) python.drop(frame);
    if (on) python.resume();
    std::lock_guard<std::mutex> hold(r.lock);
    auto found = r.stacks.find(lines);
    if (found != r.stacks.end()) return found->second;
    for (const Line &l : lines) python.take(l.code);  // as long as the recording
    auto made = r.stacks.emplace(lines, int32_t(r.order.size()));
    r.order.push_back(&made.first->first);
    return made.first->second;
}

void push(Recorder &r, Event e) {
    if (!r.room) return;
    e.time = e.time ? e.time : now();
    e.thread = this_thread(r);
    r.ring[r.written++ % r.room] = e;
}

Event alive_event(void *block, const Block &b) {
    return {0, b.number, int64_t(block), b.size, 0, b.stack, b.label, 0, kAlloc, b.category, {}};
}

void push_birth(Recorder &r, void *block, Block &b) {
    b.number = r.numbers++;
    push(r, {0, b.number, int64_t(block), b.size, 0, b.stack, -1, 0, kAlloc, 0, {}});
}

void note_birth(void *block, size_t bytes) {
    Recorder &r = *recorder;
    Block b;
    b.size = int64_t(bytes);
    if (is(kRecording) && r.depth > 0 && !inside && gil()) {
        inside = true;
        b.stack = stack(r);
        inside = false;
    }
    std::lock_guard<std::mutex> hold(r.lock);
    if (is(kRecording)) push_birth(r, block, b);
    r.alive[block] = b;
}

// Whether the block's bytes had been counted: those of a large block from before this allocator were not.
bool note_death(void *block, size_t bytes) {
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    Block b;
    b.size = int64_t(bytes);
    auto found = r.alive.find(block);
    bool known = found != r.alive.end();
    if (known) b = found->second, r.alive.erase(found);
    else if (bytes >= kLarge) return false;
    if (is(kRecording)) {
        if (b.number < 0) b.number = r.numbers++;  // older than the recording
        push(r, {0, b.number, int64_t(block), b.size, 0, b.stack, b.label, 0, kFree, b.category, {}});
    }
    return true;
}

// The limit ----------------------------------------------------------------------------------------------------------

std::atomic<int64_t> limit{0};
int (*make_room)(int64_t) = nullptr;  // whether there is room now; takes the GIL itself

bool room_made(int64_t over) {
    making = true;
    const bool made = make_room(over);
    making = false;
    return made;
}

// Count `bytes` more; asks for room where they are too many.  False, with nothing counted, if there is none.
bool claimed(size_t bytes) {
    constexpr int kTimes = 16;  // that room which was made may be taken by other threads before it is claimed
    const int64_t more = int64_t(bytes);
    const bool asks = make_room && gil() && !making;
    for (int times = 0; asks && is(kLimited); ++times) {
        const int64_t most = limit.load(std::memory_order_relaxed);
        if (count_below(more, most)) return true;
        const bool made = times < kTimes && room_made(totals.bytes.load(std::memory_order_relaxed) + more - most);
        if (!made && is(kLimited)) return count_below(more, limit.load(std::memory_order_relaxed));
    }
    count(more);
    return true;
}

// The allocator ------------------------------------------------------------------------------------------------------

constexpr size_t kHuge = size_t(1) << 22;  // bytes from which on huge pages are asked for, as NumPy does
bool huge_pages = false;

void advise(void *block, size_t bytes) {
#ifdef __linux__
    if (huge_pages && bytes >= kHuge) {
        uintptr_t first = (reinterpret_cast<uintptr_t>(block) + 4095) & ~uintptr_t(4095);
        madvise(reinterpret_cast<void *>(first), bytes - (first - reinterpret_cast<uintptr_t>(block)), MADV_HUGEPAGE);
    }
#endif
}

// Give the pages within a block back now: the C library keeps what lies between others.
void discard(void *block, size_t bytes) {
#ifdef __linux__
    uintptr_t first = (reinterpret_cast<uintptr_t>(block) + 4095) & ~uintptr_t(4095);
    uintptr_t last = (reinterpret_cast<uintptr_t>(block) + bytes) & ~uintptr_t(4095);
    if (last > first) madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
#endif
}

// Below a limit, the C library gives large blocks back at once, so that the process takes what the limit says.  A step
// asks for the same sizes again and again: what was freed is kept for that, as long as all together stay below the limit.
constexpr size_t kPooled = kLarge;  // what is smaller is not given back: the C library has it for the next

size_t rounded(size_t bytes) { return (bytes + 4095) & ~size_t(4095); }

struct Pool {
    std::mutex lock;
    std::unordered_map<size_t, std::vector<void *>> free;  // by size in whole pages
    int64_t bytes = 0;

    void *take(size_t size) {
        std::lock_guard<std::mutex> hold(lock);
        auto found = free.find(size);
        if (found == free.end() || found->second.empty()) return nullptr;
        void *block = found->second.back();
        found->second.pop_back();
        bytes -= int64_t(size);
        return block;
    }

    bool keep(void *block, size_t size) {
        std::lock_guard<std::mutex> hold(lock);
        if (totals.bytes.load(std::memory_order_relaxed) + bytes + int64_t(size) > limit.load(std::memory_order_relaxed)) return false;
        free[size].push_back(block);
        bytes += int64_t(size);
        return true;
    }

    // Give back until all together are below `most`.
    void trim(int64_t most) {
        std::lock_guard<std::mutex> hold(lock);
        for (auto &[size, blocks] : free)
            while (!blocks.empty() && totals.bytes.load(std::memory_order_relaxed) + bytes > most) {
                discard(blocks.back(), size);
                std::free(blocks.back());
                blocks.pop_back();
                bytes -= int64_t(size);
            }
    }
};
Pool *pool = new Pool();

// Give back what was kept beyond the limit.
void trim_pool() {
    if (is(kLimited)) pool->trim(limit.load(std::memory_order_relaxed));
}

// As `claimed`, of memory that is not looked for among what was freed: that makes way.
bool counted(size_t bytes) {
    if (!claimed(bytes)) return false;
    trim_pool();
    return true;
}

// Count `bytes`, and find a block of that size that was freed, if there is one; false if the limit forbids another.
bool admitted(size_t bytes, void *&block) {
    bool pools = bytes >= kPooled && is(kExact) && is(kLimited);
    if (!claimed(bytes)) return false;
    block = pools ? pool->take(rounded(bytes)) : nullptr;
    if (!block) trim_pool();
    return true;
}

void *enter(void *block, size_t bytes);

// Whether a block is neither counted nor recorded.  Small ones are: their deaths could not be told from those of others.
bool uncounted(size_t bytes) { return is(kAside) && aside && bytes >= kLarge; }

void *allocate(void *, size_t bytes) {
    if (uncounted(bytes)) return std::malloc(bytes);
    void *block;
    if (!admitted(bytes, block)) return nullptr;
    if (!block) {
        block = marked(std::malloc(bytes >= kPooled && is(kExact) ? rounded(bytes) : with_spare(bytes)), bytes);
        if (block) advise(block, bytes);
    }
    return enter(block, bytes);
}

void *cleared(void *block, size_t bytes) {  // by all threads, where it is much
    parallel_for(long(bytes), 1L << 19, [=](long begin, long end) { std::memset(static_cast<char *>(block) + begin, 0, end - begin); });
    return block;
}

void *allocate_zeros(void *, size_t number, size_t each) {
    size_t bytes;
    if (__builtin_mul_overflow(number, each, &bytes)) return nullptr;
    if (uncounted(bytes)) return std::calloc(number, each);
    void *block;
    if (!admitted(bytes, block)) return nullptr;
    if (block) return cleared(enter(block, bytes), bytes);
    block = marked(std::calloc(bytes >= kPooled && is(kExact) ? rounded(bytes) : with_spare(bytes), 1), bytes);
    if (block) advise(block, bytes);
    return enter(block, bytes);
}

// The size of a block: as the recorder knows it, or by its end.
size_t size_of(void *block) {
    {
        std::lock_guard<std::mutex> hold(recorder->lock);
        auto found = recorder->alive.find(block);
        if (found != recorder->alive.end()) return size_t(found->second.size);
    }
    return size_by_end(block);
}

// Of a block that is large before or afterwards; if it was counted, it no longer is.
void *resize_aside(void *block, size_t before, size_t bytes) {
    died(block, before);
    void *moved = marked(std::realloc(block, with_spare(bytes)), bytes);
    if (!moved || bytes >= kLarge) return moved;
    count(int64_t(bytes));
    return enter(moved, bytes);
}

void *resize(void *, void *block, size_t bytes) {
    if (!block) return allocate(nullptr, bytes);
    size_t before = size_of(block);
    if (uncounted(std::max(before, bytes))) return resize_aside(block, before, bytes);
    if (!counted(bytes)) return nullptr;
    died(block, before);
    void *moved = marked(std::realloc(block, with_spare(bytes)), bytes);
    if (moved) return enter(moved, bytes);
    enter(nullptr, bytes);
    born(block, before, false);
    return nullptr;
}

// A block whose bytes were counted begins to live; without one they are taken back.
void *enter(void *block, size_t bytes) {
    if (!block) {
        totals.bytes.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
        return nullptr;
    }
    Tally &own = mine();
    add(own.born, 1);
    add(own.born_bytes, int64_t(bytes));
    if (bytes >= kLarge || is(kRecording)) note_birth(block, bytes);
    return block;
}

void release(void *, void *block, size_t bytes) {
    if (!block) return;
    died(block, bytes);
    if (is(kExact) && bytes >= kLarge) {
        size_t size = rounded(bytes);
        if (bytes >= kPooled && is(kLimited) && usable(block) >= size && pool->keep(block, size)) return;
        discard(block, bytes);
    }
    std::free(block);
}

struct Allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
};
struct Handler {
    char name[127];
    uint8_t version;
    Allocator allocator;
} handler = {"rushlight", 1, {nullptr, allocate, allocate_zeros, resize, release}};

}  // namespace

// The working memory of a kernel, which runs without the GIL.
bool born(void *block, size_t bytes, bool bounded) {
    bool done = false;
    if (is(kLimited) && python.ensure) {
        int state = python.ensure();
        done = counted(bytes);
        python.release(state);
        if (!done && bounded) return false;
    }
    if (!done) count(int64_t(bytes));
    enter(block, bytes);
    return true;
}

void died(void *block, size_t bytes) {
    if ((bytes >= kLarge || is(kRecording)) && !note_death(block, bytes)) return;
    add(mine().dead, 1);
    totals.bytes.fetch_sub(int64_t(bytes), std::memory_order_relaxed);
}

}  // namespace rl

using namespace rl;

// All of these are called with the GIL held.

RL_EXPORT void *rl_memory_handler(int huge) {
    huge_pages = huge;
    return &handler;
}

RL_EXPORT void rl_memory_python(void **functions) { std::memcpy(&python, functions, sizeof python); }

// bytes, peak, blocks, blocks ever, bytes ever
RL_EXPORT void rl_memory_totals(int64_t *out) {
    out[0] = totals.bytes.load();
    out[1] = totals.peak.load();
    out[2] = adopted.load();
    out[3] = out[4] = 0;
    for (Tally *t = tallies.load(); t; t = t->next) {
        out[2] += t->born.load() - t->dead.load();
        out[3] += t->born.load();
        out[4] += t->born_bytes.load();
    }
}

RL_EXPORT void rl_memory_reset_peak() { totals.peak.store(totals.bytes.load()); }

// Whether the process shall take no more memory than what is allocated.
RL_EXPORT void rl_memory_exact(int on) {
    if (on) flags |= kExact;
    else flags &= ~kExact;
}

// most: bytes, 0 for no limit; room: called with the bytes that are too many, returns whether they are free now
RL_EXPORT void rl_memory_limit(int64_t most, int (*room)(int64_t)) {
    make_room = room;
    limit.store(most);
    if (most) flags |= kLimited;
    else flags &= ~kLimited, pool->trim(0);
}

// Whether what this thread allocates from now on is about the recording: large blocks are then not counted.  Returns what
// was said before.
RL_EXPORT int rl_memory_aside(int on) {
    bool former = aside;
    if (bool(on) == former) return former;
    aside = on;
    if ((asides += on ? 1 : -1) > 0) flags |= kAside;
    else flags &= ~kAside;
    return former;
}

// Start anew with a ring for `events` events and stacks of `depth` lines; 0 events: stop, keeping what there is.
RL_EXPORT void rl_memory_record(int64_t events, int depth) {
    Recorder &r = *recorder;
    if (!events && is(kRecording)) {
        std::lock_guard<std::mutex> hold(r.lock);
        for (auto &[block, b] : r.alive) r.left.push_back(alive_event(block, b));
    }
    flags &= ~kRecording;
    if (!events) return;
    for (auto *lines : r.order)
        for (const Line &l : *lines) python.drop(l.code);
    std::lock_guard<std::mutex> hold(r.lock);
    r.order.clear();
    r.stacks.clear();
    r.left.clear();
    r.written = 0;
    r.numbers = 0;
    for (auto at = r.alive.begin(); at != r.alive.end();)
        if (size_t(at->second.size) < kLarge) at = r.alive.erase(at);
        else {
            Block old = at->second;
            at->second = Block{r.numbers++, old.size, -1, -1, 0};
            ++at;
        }
    r.depth = depth;
    r.resize(uint64_t(events));
    if (r.room) flags |= kRecording;
}

// Drop the events.
RL_EXPORT void rl_memory_forget() {
    rl_memory_record(1, 0);
    flags &= ~kRecording;
    recorder->resize(0);
}

// A block that was alive before, of whose category Python knows; counted if it was not.
RL_EXPORT void rl_memory_adopt(void *block, int64_t bytes, int category) {
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    auto found = r.alive.find(block);
    if (found == r.alive.end()) {
        if (size_t(bytes) >= kLarge) {
            ++adopted;
            raise_peak(totals.bytes.fetch_add(bytes) + bytes);
        } else if (!is(kRecording)) return;
        found = r.alive.emplace(block, Block{r.numbers++, bytes, -1, -1, 0}).first;
    }
    found->second.category = uint8_t(category);
}

// Say of the blocks that this thread made since `start` (of the clock below) who made them; whether there were any.
RL_EXPORT int rl_memory_label(int64_t start, int label, int category) {
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    uint64_t oldest = r.written > r.room ? r.written - r.room : 0;
    uint32_t thread = this_thread(r);
    int some = 0;
    for (uint64_t i = r.written; i > oldest; --i) {
        Event &e = r.ring[(i - 1) % r.room];
        if (e.action > kFree) continue;
        if (e.time < start) break;
        if (e.thread != thread || e.label != -1) continue;
        some = 1;
        e.label = label;
        if (!e.category) e.category = uint8_t(category);
        auto found = r.alive.find(reinterpret_cast<void *>(e.address));
        if (found != r.alive.end() && found->second.number == e.block && found->second.label == -1) {
            found->second.label = label;
            if (!found->second.category) found->second.category = uint8_t(category);
        }
    }
    return some;
}

// The category of an array's block from now on: unless it is one of those whose bits are set in `keep`.
RL_EXPORT void rl_memory_category(Array *array, int category, int keep) {
    void *block = array->data;
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    auto found = r.alive.find(block);
    if (found == r.alive.end()) return;
    Block &b = found->second;
    if (b.category == category || (keep >> b.category & 1)) return;
    push(r, {0, b.number, int64_t(block), b.size, category, b.stack, b.label, 0, kCategory, b.category, {}});
    b.category = uint8_t(category);
}

// A phase (action 3) or a mark of the user (4), now or since a time of the clock.
RL_EXPORT void rl_memory_mark(int action, int64_t value, int64_t since) {
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    push(r, {since, -1, 0, 0, value, -1, -1, 0, uint8_t(action), 0, {}});
}

// events kept, events dropped, blocks alive, stacks
RL_EXPORT void rl_memory_sizes(int64_t *out) {
    Recorder &r = *recorder;
    uint64_t kept = std::min<uint64_t>(r.written, r.room);
    out[0] = int64_t(kept);
    out[1] = int64_t(r.written - kept);
    out[2] = int64_t(is(kRecording) ? r.alive.size() : r.left.size());
    out[3] = int64_t(r.order.size());
}

void copy_alive(Recorder &r, Event *out) {
    if (!is(kRecording)) std::copy(r.left.begin(), r.left.end(), out);
    else
        for (auto &[block, b] : r.alive) *out++ = alive_event(block, b);
}

// The events kept, oldest first, then a birth for every block alive (or that was, when the recording stopped), and the sizes of `rl_memory_sizes`; whether there
// was room for them (in `room` events: other threads go on meanwhile).
RL_EXPORT int rl_memory_events(Event *out, int64_t room, int64_t *sizes) {
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    rl_memory_sizes(sizes);
    if (sizes[0] + sizes[2] > room) return 0;
    uint64_t kept = sizes[0];
    for (uint64_t i = r.written - kept; i < r.written; ++i) *out++ = r.ring[i % r.room];
    copy_alive(r, out);
    return 1;
}

// The blocks of `rl_memory_events` without the events: what costs the same however long a recording is.
RL_EXPORT int rl_memory_alive(Event *out, int64_t room, int64_t *sizes) {
    Recorder &r = *recorder;
    std::lock_guard<std::mutex> hold(r.lock);
    rl_memory_sizes(sizes);
    if (sizes[2] > room) return 0;
    copy_alive(r, out);
    return 1;
}

RL_EXPORT int rl_memory_stack_size(int stack) {
    std::lock_guard<std::mutex> hold(recorder->lock);
    return int(recorder->order[stack]->size());
}

// The lines of a stack: code objects, and positions in them.
RL_EXPORT void rl_memory_stack(int stack, void **codes, int *positions) {
    std::lock_guard<std::mutex> hold(recorder->lock);
    for (const Line &l : *recorder->order[stack]) {
        *codes++ = l.code;
        *positions++ = l.position;
    }
}
