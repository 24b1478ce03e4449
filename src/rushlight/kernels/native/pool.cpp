// A small pool of threads.
//
// Not OpenMP, for three reasons: a forked child may use it (libgomp hangs there), a caller never waits for
// a worker that is still waking up (it takes the pieces itself), and workers that wait for the next job leave
// their core to whoever wants it, BLAS for one.
#include <pthread.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "common.h"

namespace rl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long kSpinMicroseconds = 1000;  // longer than what Python does between two jobs of a step; to wake takes up to 50
constexpr long kSmall = 4;                // pieces up to which a job is done before workers that sleep are there
constexpr long kCloseMicroseconds = 200;  // small jobs that follow each other so closely are many: then
constexpr int kMany = 8;                  // after so many workers are woken for the next

// Waits for `done` for a while without sleeping; whether it came true.  Who else wants the core is let go first.
template <class F> bool spin(F done) {
    Clock::time_point end = Clock::now() + std::chrono::microseconds(kSpinMicroseconds);
    do {
        for (int i = 0; i < 32; ++i) {
            if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
        std::this_thread::yield();
    } while (Clock::now() < end);
    return false;
}

constexpr int kMost = 256;  // workers

// Pieces of work. Each thread begins with a share of its own, the same one in every job of the size, so that what it wrote is
// still in its cache; then it helps the others.
struct Job {
    struct Share {
        alignas(64) std::atomic<long> next;
        long end;
    };

    Body body;
    void *context;
    long count, grain, pieces;
    int shares;
    Share *share;

    Job(long count, long grain, Body body, void *context, int threads, Share *room)
        : body(body), context(context), count(count), grain(grain), pieces(ceil_div(count, grain)), shares(threads), share(room) {
        if (pieces < shares) shares = int(pieces);
        for (int i = 0; i < shares; ++i) {
            share[i].next.store(first(i), std::memory_order_relaxed);
            share[i].end = first(i + 1);
        }
    }

    long first(long i) const { return i * pieces / shares; }

    void work(int me) {
        for (int i = 0, at = me % shares; i < shares; ++i, at = at + 1 < shares ? at + 1 : 0) {
            Share &mine = share[at];
            while (mine.next.load(std::memory_order_relaxed) < mine.end) {
                const long piece = mine.next.fetch_add(1);
                if (piece < mine.end) one(piece);
            }
        }
    }

    void alone() {
        for (long i = 0; i < pieces; ++i) one(i);
    }

    void one(long piece) {
        const long begin = piece * grain, end = begin + grain;
        body(context, begin, end < count ? end : count);
    }
};

// What all threads look at, in one number: which job it is (32 bits), how many workers are called to it (15), whether it is open (1), and
// how many are at it (16).
struct State {
    static constexpr uint64_t kOne = 1, kOpen = 1 << 16;
    uint64_t bits;

    static State opened(uint32_t number, int called) { return {uint64_t(number) << 32 | uint64_t(called) << 17 | kOpen}; }
    uint32_t number() const { return uint32_t(bits >> 32); }
    int called() const { return int(bits >> 17 & 0x7fff); }
    bool open() const { return bits & kOpen; }
    int inside() const { return int(bits & 0xffff); }
};

// What threads sleep by until it rings.  Linux compares the number itself: those that are woken meet no lock.
class Bell {
    std::atomic<uint32_t> rung_{0};
    std::atomic<int> asleep_{0};
#ifndef __linux__
    std::mutex lock_;
    std::condition_variable wake_;
#endif

    // Unless it has rung since.
    void sleep(uint32_t heard) {
        ++asleep_;
#ifdef __linux__
        syscall(SYS_futex, &rung_, FUTEX_WAIT_PRIVATE, heard, nullptr, nullptr, 0);
#else
        std::unique_lock<std::mutex> hold(lock_);
        wake_.wait(hold, [&] { return rung_ != heard; });
#endif
        --asleep_;
    }

  public:
    int asleep() const { return asleep_; }

    // For as many of those that sleep.
    void ring(int some) {
        ++rung_;
        if (some < 1 || !asleep_) return;
#ifdef __linux__
        syscall(SYS_futex, &rung_, FUTEX_WAKE_PRIVATE, some, nullptr, nullptr, 0);
#else
        { std::lock_guard<std::mutex> hold(lock_); }  // they sleep, and do not only mean to
        wake_.notify_all();
#endif
    }

    // Until it rings, unless `done` meanwhile.
    template <class F> void sleep_unless(F done) {
        const uint32_t heard = rung_;
        if (!done()) sleep(heard);
    }
};

struct Pool {
    std::mutex busy;  // held by the caller whose job runs; others then work alone
    alignas(64) std::atomic<uint64_t> state{0};
    alignas(64) Job *job = nullptr;  // of the state, while that is open
    std::atomic<bool> stopping{false};  // all workers end
    alignas(64) Bell work_bell, done_bell;
    std::thread threads[kMost];
    int workers = 0;
    Clock::time_point last;  // when a small job was done alone
    int in_a_row = 0;        // how many followed each other closely

    State now() const { return {state.load()}; }

    void serve(int me) {
        uint32_t seen = 0;
        for (;;) {
            auto called = [&] {
                const State found = now();
                return stopping || (found.number() != seen && found.open() && found.inside() < found.called());
            };
            while (!spin(called)) work_bell.sleep_unless(called);
            if (stopping) return;
            seen = join(me);
        }
    }

    // Works at the job there is, whose number is returned.  One that comes too late leaves at once.
    uint32_t join(int me) {
        const State found{state.fetch_add(State::kOne)};
        if (found.open()) job->work(me);
        const State left{state.fetch_sub(State::kOne) - State::kOne};
        if (!left.open() && !left.inside()) done_bell.ring(1);
        return found.number();
    }

    int grown(int wanted) {
        for (wanted = wanted < kMost ? wanted : kMost; workers < wanted; ++workers) {
            try {
                threads[workers] = std::thread([this, me = workers + 1] { serve(me); });
            } catch (...) {
                break;  // no more threads to be had: those we have do the work
            }
        }
        return wanted < workers ? wanted : workers;
    }

    // The job of who holds `busy`, with the help of so many workers.
    void work(Job &mine, int helpers) {
        publish(mine, grown(helpers));
        mine.work(0);
        finish();
    }

    // Whether a small job finds a worker that is awake.  By who holds `busy`.
    bool awake() {
        if (workers > work_bell.asleep()) return true;
        const Clock::time_point now = Clock::now();
        in_a_row = now - last < std::chrono::microseconds(kCloseMicroseconds) ? in_a_row + 1 : 0;
        last = now;
        if (in_a_row == kMany) {
            grown(rl::threads() - 1);
            work_bell.ring(workers);
            in_a_row = 0;
        }
        return false;
    }

    // All workers end; the next job makes new ones.  By who holds `busy`.
    void stop() {
        stopping = true;
        work_bell.ring(workers);
        for (; workers; --workers) threads[workers - 1].join();
        stopping = false;
    }

    void publish(Job &fresh, int called) {
        job = &fresh;
        // Those that came too late for the last job may still be leaving: they are counted.
        uint64_t old = state;
        while (!state.compare_exchange_weak(old, State::opened(State{old}.number() + 1, called).bits | State{old}.inside())) {
        }
        work_bell.ring(called - (workers - work_bell.asleep()));  // beside those that are awake
    }

    // No worker may join from here on; those that have are waited for.
    void finish() {
        state.fetch_and(~State::kOpen);
        auto done = [&] { return !now().inside(); };
        while (!spin(done)) done_bell.sleep_unless(done);
    }
};

std::atomic<int> wanted_threads{1};
Pool *pool = nullptr;  // never freed: workers may outlive static destructors

// A process that is forked has no workers: neither could they go on in the child, nor is Python to warn of them (3.12).
void before_fork() {
    pool->busy.lock();
    pool->stop();
}
void after_fork() { pool->busy.unlock(); }
void in_child() { pool = new Pool(); }  // whose locks nobody holds

__attribute__((constructor)) void start() {
    pool = new Pool();
    pthread_atfork(before_fork, after_fork, in_child);
}

}  // namespace

int threads() { return wanted_threads.load(std::memory_order_relaxed); }

void run(long count, long grain, Body body, void *context, bool wakes) {
    // At most eight pieces a thread: small enough to even out, large enough to keep the counter cold.
    const bool small = !wakes && count <= kSmall * grain;
    const int most = threads() < kMost ? threads() : kMost;
    long least = count / (8L * most);
    if (grain < least) grain = (least + grain - 1) / grain * grain;
    alignas(Job::Share) char room[sizeof(Job::Share) * kMost];
    Job job(count, grain, body, context, most, reinterpret_cast<Job::Share *>(room));
    std::unique_lock<std::mutex> turn(pool->busy, std::try_to_lock);
    if (!turn.owns_lock() || job.pieces < 2 || (small && !pool->awake())) return job.alone();
    pool->work(job, job.shares - 1);
}

}  // namespace rl

RL_EXPORT int rl_abi(void) { return RL_ABI; }
RL_EXPORT void rl_set_threads(int n) { rl::wanted_threads = n < 1 ? 1 : n; }
RL_EXPORT int rl_get_threads(void) { return rl::threads(); }
