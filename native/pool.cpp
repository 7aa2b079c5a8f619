// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#if !defined(_WIN32)
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace splat {
namespace {

constexpr int max_threads = 256;

class Pool {
public:
    explicit Pool(int threads) {
        // A system that refuses a thread gets its work done by fewer.
        try {
            for (int worker = 1; worker < threads; ++worker)
                threads_.emplace_back([this, worker] { serve(worker); });
        } catch (const std::system_error&) {
        }
    }
    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stop_ = true;
            generation_.fetch_add(1);
        }
        wake_.notify_all();
        for (auto& t : threads_) t.join();
    }
    void run(int items, Task task, void* context, int limit) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            task_ = task;
            context_ = context;
            items_ = items;
            limit_ = limit;
            next_.store(0);
            failure_ = nullptr;
            open_ = true;
            generation_.fetch_add(1);
        }
        wake_.notify_all();
        drain(0);
        {
            // A thread that has not come by now finds nothing to do: nobody waits until it wakes.
            std::lock_guard<std::mutex> lock(mutex_);
            open_ = false;
        }
        // The others are at most one item behind; spinning is shorter than a sleep.
        for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin)
            if (spin > 200) std::this_thread::yield();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void drain(int worker) {
        try {
            for (int item; (item = next_.fetch_add(1)) < items_;) task_(context_, item, worker);
        } catch (...) {
            next_.store(items_);
            std::lock_guard<std::mutex> lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }
    void serve(int worker) {
        unsigned seen = 0;
        for (;;) {
            // Regions of one pass follow each other within microseconds: look for the
            // next one briefly before going to sleep.
            for (int spin = 0; spin < 4000 && generation_.load(std::memory_order_acquire) == seen;
                 ++spin)
#if defined(__x86_64__) || defined(__i386__)
                __builtin_ia32_pause();
#else
                std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return generation_.load() != seen; });
                seen = generation_.load();
                if (stop_) return;
                if (!open_ || worker >= limit_) continue;
                busy_.fetch_add(1);
            }
            drain(worker);
            busy_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<unsigned> generation_{0};
    std::atomic<int> next_{0}, busy_{0};
    std::exception_ptr failure_;
    Task task_ = nullptr;
    void* context_ = nullptr;
    int items_ = 0, limit_ = 0;
    bool open_ = false, stop_ = false;
};

int default_threads() {
    if (const char* text = std::getenv("SPLATCERT_NUM_THREADS")) {
        const int n = std::atoi(text);
        if (n >= 1) return n < max_threads ? n : max_threads;
    }
    const unsigned n = std::thread::hardware_concurrency();
    return n == 0 ? 1 : static_cast<int>(n < max_threads ? n : max_threads);
}

std::mutex region_mutex;  // one parallel region at a time; others queue here
Pool* pool = nullptr;
#if defined(_WIN32)
int getpid() { return 0; }  // there is no fork
#endif
int pool_process = 0;
int wanted = 0;
thread_local bool inside_region = false, kept_to_one = false;

int wanted_threads() { return wanted > 0 ? wanted : default_threads(); }

}  // namespace

int thread_count() { return kept_to_one ? 1 : wanted_threads(); }

void keep_to_this_thread(bool yes) { kept_to_one = yes; }

void set_thread_count(int n) {
    std::lock_guard<std::mutex> lock(region_mutex);
    wanted = n < 0 ? 0 : (n < max_threads ? n : max_threads);
    if (pool && pool_process == getpid()) delete pool;
    pool = nullptr;
}

void run_parallel(int items, Task task, void* context, int limit) {
    if (items <= 0) return;
    if (inside_region || items == 1 || thread_count() == 1) {
        for (int item = 0; item < items; ++item) task(context, item, 0);
        return;
    }
    std::lock_guard<std::mutex> lock(region_mutex);
    // Threads do not survive a fork: the child starts its own and forgets the parent's.
    if (!pool || pool_process != getpid()) {
        pool = new Pool(wanted_threads());
        pool_process = getpid();
    }
    struct Guard {
        Guard() { inside_region = true; }
        ~Guard() { inside_region = false; }
    } guard;
    pool->run(items, task, context, limit);
}

// Fresh pages cost more than the work done in them: large blocks are kept for the next pass.
namespace {

constexpr std::size_t alignment = 64;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t smallest_kept = ~std::size_t(0);  // keeping would hide overflows
#else
constexpr std::size_t smallest_kept = std::size_t(1) << 16;
#endif
constexpr std::size_t kept_at_most = std::size_t(512) << 20;
constexpr std::size_t smallest_huge = std::size_t(8) << 20;  // blocks that ask for large pages

struct Header {
    std::size_t size;  // class of the block, without this header
    Header* next;
};
static_assert(sizeof(Header) <= alignment, "the header fits in front of a block");

std::mutex kept_mutex;

#if !defined(_WIN32)
// A fork while another thread holds a mutex must not leave the child waiting for it.
const int fork_handlers = pthread_atfork(
    [] {
        region_mutex.lock();
        kept_mutex.lock();
    },
    [] {
        kept_mutex.unlock();
        region_mutex.unlock();
    },
    [] {
        kept_mutex.unlock();
        region_mutex.unlock();
    });
#endif

Header* kept[256] = {};  // by size class
std::size_t kept_bytes = 0;

// Quarter steps between powers of two; returns the class and rounds the size up to it.
int size_class(std::size_t& bytes) {
    int power = 63 - __builtin_clzll(bytes);
    const std::size_t step = (std::size_t(1) << power) / 4;
    const std::size_t quarters = (bytes + step - 1) / step;  // 4 to 8
    bytes = quarters * step;
    return static_cast<int>(4 * power + (quarters - 4)) & 255;
}

}  // namespace

void* aligned_new(std::size_t bytes) {
    if (bytes < alignment) bytes = alignment;
    if (bytes > (std::size_t(1) << 60)) throw std::bad_alloc();
    if (bytes >= smallest_kept) {
        Header*& list = kept[size_class(bytes)];
        std::lock_guard<std::mutex> lock(kept_mutex);
        if (list && list->size == bytes) {
            Header* header = list;
            list = header->next;
            kept_bytes -= bytes;
            return reinterpret_cast<char*>(header) + alignment;
        }
    }
    char* block =
        static_cast<char*>(::operator new(bytes + alignment, std::align_val_t(alignment)));
#if defined(MADV_HUGEPAGE)
    // Passes over millions of Gaussians would otherwise spend their time on faults and lookups
    // of small pages. Only whole pages inside the block are meant; a refusal does no harm.
    if (bytes >= smallest_huge) {
        const std::uintptr_t page = 4096, first = reinterpret_cast<std::uintptr_t>(block);
        const std::uintptr_t begin = (first + page - 1) / page * page, end = first + bytes;
        madvise(reinterpret_cast<void*>(begin), (end - begin) / page * page, MADV_HUGEPAGE);
    }
#endif
    reinterpret_cast<Header*>(block)->size = bytes;
    return block + alignment;
}

void aligned_delete(void* p) {
    if (!p) return;
    Header* header = reinterpret_cast<Header*>(static_cast<char*>(p) - alignment);
    std::size_t bytes = header->size;
    if (bytes >= smallest_kept) {
        Header*& list = kept[size_class(bytes)];
        std::lock_guard<std::mutex> lock(kept_mutex);
        if (kept_bytes + bytes <= kept_at_most) {
            header->next = list;
            list = header;
            kept_bytes += bytes;
            return;
        }
    }
    ::operator delete(static_cast<void*>(header), std::align_val_t(alignment));
}

}  // namespace splat
