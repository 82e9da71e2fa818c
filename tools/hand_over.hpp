// SPDX-License-Identifier: Apache-2.0
/// A queue between two threads whose end, or failure, is seen by both.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace polyscan::tool {

/// Holds as many items as exist: its users pass a fixed set of buffers around, so it needs no bound of its own.
template <class T>
class hand_over {
public:
    void put(T item) {
        {
            const std::lock_guard lock(mutex_);
            items_.push_back(std::move(item));
        }
        changed_.notify_one();
    }

    /// Waits for an item; nothing after `close`, when all items are taken, and after `abandon`.
    std::optional<T> take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !items_.empty() || closed_; });
        if (abandoned_ || items_.empty()) return std::nullopt;
        T item = std::move(items_.front());
        items_.pop_front();
        return item;
    }

    /// No more items will come.
    void close() { end(false); }
    /// Items that nobody took yet do not matter any more.
    void abandon() { end(true); }

private:
    void end(bool abandoned) {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            abandoned_ = abandoned_ || abandoned;
        }
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<T> items_;
    bool closed_ = false;
    bool abandoned_ = false;
};

} // namespace polyscan::tool
