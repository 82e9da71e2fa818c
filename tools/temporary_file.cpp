// SPDX-License-Identifier: Apache-2.0
#include "temporary_file.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace polyscan::tool {

/// Temporary files that a signal handler can find. A fixed table: a handler may neither allocate
/// nor take a lock. Sixteen is far more than one program run writes at a time.
struct temporary_slot {
    enum : int { free, claimed, listed };
    std::atomic<int> status{free};
    std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<int>::is_always_lock_free, "the signal handler must not wait for a lock");

namespace {

std::array<temporary_slot, 16> temporary_slots;

temporary_slot* list_temporary(const std::string& path) {
    for (auto& slot : temporary_slots) {
        int expected = temporary_slot::free;
        // Acquire pairs with the release in unlist_temporary: the last owner is done with `path`.
        if (slot.status.compare_exchange_strong(expected, temporary_slot::claimed, std::memory_order_acquire)) {
            std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
            // Publishes `path` to the acquire in remove_temporaries.
            slot.status.store(temporary_slot::listed, std::memory_order_release);
            return &slot;
        }
    }
    return nullptr;
}

void unlist_temporary(temporary_slot* slot) {
    // Hands `path` to the acquire of the next owner in list_temporary.
    slot->status.store(temporary_slot::free, std::memory_order_release);
}

/// Async-signal-safe: atomics, unlink, sigaction and raise only.
extern "C" void remove_temporaries(int signal_number) {
    const int saved_errno = errno;
    for (auto& slot : temporary_slots) {
        // Pairs with the release in list_temporary, which published `path`.
        if (slot.status.load(std::memory_order_acquire) == temporary_slot::listed) {
            (void)::unlink(slot.path.data());
        }
    }
    struct sigaction standard{};
    standard.sa_handler = SIG_DFL;
    (void)::sigaction(signal_number, &standard, nullptr);
    // Blocked while this handler runs; it ends the program, by the right cause, on return.
    (void)::raise(signal_number);
    errno = saved_errno;
}

} // namespace

temporary_file::temporary_file(const std::filesystem::path& target, mode_t mode, std::string_view label) {
    std::random_device random;
    constexpr int attempts = 100; // a taken name is a coincidence of 64 random bits
    for (int attempt = 0; attempt < attempts; ++attempt) {
        const std::uint64_t mark = (std::uint64_t{random()} << 32) ^ random();
        path_ = (target.parent_path() / fmt::format(".polyscan-{:016x}.tmp", mark)).string();
        if (path_.size() >= PATH_MAX) {
            throw bad_input(label, fmt::format("cannot be created: {}", error_text(ENAMETOOLONG)));
        }
        // Listed before it exists: a signal between the two finds nothing to remove, while the
        // other order would leave the file behind.
        slot_ = list_temporary(path_);
        if (slot_ == nullptr) {
            throw std::logic_error("temporary_file: too many outputs are open at once");
        }
        const int number = open_retrying(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
        if (number >= 0) {
            file_ = file_descriptor::owning(number);
            return;
        }
        const int error_number = errno;
        unlist_temporary(std::exchange(slot_, nullptr));
        if (error_number != EEXIST) {
            throw bad_input(label, fmt::format("cannot be created: {}", error_text(error_number)));
        }
    }
    throw bad_input(label, "cannot be created: no free name for a temporary file beside it");
}

temporary_file::~temporary_file() {
    if (slot_ != nullptr) {
        (void)::unlink(path_.c_str());
        unlist_temporary(slot_);
    }
}

int temporary_file::rename_to(const std::filesystem::path& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) {
        return errno;
    }
    // A signal before the next line unlinks a name that no longer exists.
    unlist_temporary(std::exchange(slot_, nullptr));
    return 0;
}

void remove_temporaries_on_signal() {
    // All that end a program unless it asks for them, but for those of timers that it would have to start.
    constexpr std::array ending{SIGHUP,  SIGINT,  SIGQUIT, SIGILL,  SIGABRT, SIGBUS, SIGFPE,
                                SIGSEGV, SIGPIPE, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
    struct sigaction action{};
    action.sa_handler = remove_temporaries;
    // The others are held back meanwhile: a second Ctrl-C must not cut the removal short.
    ::sigemptyset(&action.sa_mask);
    for (const int held : ending) {
        ::sigaddset(&action.sa_mask, held);
    }
    for (const int signal_number : ending) {
        struct sigaction current{};
        // What was started with a signal ignored (nohup, a background job) must go on ignoring it, and what somebody
        // handles is his.
        if (::sigaction(signal_number, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) {
            (void)::sigaction(signal_number, &action, nullptr);
        }
    }
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    (void)::sigaction(SIGXFSZ, &ignore, nullptr);
}

} // namespace polyscan::tool
