// Shared ownership with the count inside the object. Layer: base.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir::detail {

/// Base of an object that counts its owners. A derived class defines `void last_owner_gone() noexcept`, which is called when the last
/// owner goes. `CanBeFound`: `try_add_owner` may make an owner without having one.
template <class Derived, bool CanBeFound = false>
class counted {
public:
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;

    void add_owner() const noexcept {
        if (owners_.load(std::memory_order_relaxed) == 0) {
            owners_.store(1, std::memory_order_relaxed);  // no other thread can know the object yet
        } else {
            owners_.fetch_add(1, std::memory_order_relaxed);
        }
    }

    /// Sets the number of owners; may be called only by the only owner.
    void become_owners(std::uint32_t all) const noexcept { owners_.store(all, std::memory_order_relaxed); }
    /// Adds `more` owners at once; the caller must be an owner.
    void add_owners(std::uint32_t more) const noexcept { owners_.fetch_add(more, std::memory_order_relaxed); }
    /// Removes `fewer` of those; the caller must remain an owner.
    void drop_owners(std::uint32_t fewer) const noexcept { owners_.fetch_sub(fewer, std::memory_order_release); }

    /// Whether the caller is the only owner, and may change the object.
    [[nodiscard]] bool has_one_owner() const noexcept { return owners_.load(std::memory_order_acquire) == 1; }

    void drop_owner() const noexcept {
        // acquire and release: what any owner did to the object happens before the last owner ends it. An only owner remains the only one,
        // because only owners make owners: it needs no atomic read-modify-write, the costly part of a drop.
        if ((!CanBeFound && owners_.load(std::memory_order_acquire) == 1) ||
            owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            end();
        }
    }

    /// For code that knows the object without being an owner: adds one owner, unless the last one is gone. The caller must make sure that
    /// `last_owner_gone` does not end the object meanwhile.
    [[nodiscard]] bool try_add_owner() const noexcept requires CanBeFound {
        std::uint32_t owners = owners_.load(std::memory_order_relaxed);
        while (owners != 0) {
            if (owners_.compare_exchange_weak(owners, owners + 1, std::memory_order_acq_rel)) {
                return true;
            }
        }
        return false;
    }

protected:
    counted() = default;
    ~counted() = default;

private:
    [[gnu::noinline]] void end() const noexcept {
        owners_.store(0, std::memory_order_relaxed);
        const_cast<Derived*>(static_cast<const Derived*>(this))->last_owner_gone();
    }

    mutable std::atomic<std::uint32_t> owners_{0};
};

/// A pointer that is an owner of a `counted` object.
template <class T>
class owner {
public:
    owner() = default;
    explicit owner(T* object) noexcept : object_(object) {
        if (object_ != nullptr) {
            object_->add_owner();
        }
    }
    /// An owner of an object that the caller knows without owning it; empty if the last owner is gone.
    [[nodiscard]] static owner try_make(T& object) noexcept {
        owner made;
        if (object.try_add_owner()) {
            made.object_ = &object;
        }
        return made;
    }
    /// An owner that `add_owners` has already counted.
    [[nodiscard]] static owner adopt(T* object) noexcept {
        owner made;
        made.object_ = object;
        return made;
    }
    owner(const owner& other) noexcept : object_(other.object_) {
        if (object_ != nullptr) {
            object_->add_owners(1);
        }
    }
    owner(owner&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    // Not by value: in a template, Clang (14, 16) does not destroy the parameter of `one = {}`.
    owner& operator=(const owner& other) noexcept {
        if (this != &other) {
            *this = owner(other);
        }
        return *this;
    }
    owner& operator=(owner&& other) noexcept {
        owner taken(std::move(other));
        std::swap(object_, taken.object_);
        return *this;
    }
    ~owner() {
        if (object_ != nullptr) {
            object_->drop_owner();
        }
    }

    [[nodiscard]] T* get() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    T* operator->() const noexcept { return object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    friend bool operator==(const owner&, const owner&) = default;

private:
    T* object_ = nullptr;
};

/// An object that counts its owners and is destroyed with the last of them, for owners that do not know its type.
class shared_object : public counted<shared_object> {
public:
    void last_owner_gone() noexcept { delete this; }

protected:
    shared_object() = default;
    virtual ~shared_object() = default;
};

/// An owner of a T, which is a shared_object and does not change while there are other owners. T may be incomplete where it is not used.
template <class T>
class shared_owner {
public:
    shared_owner() = default;
    shared_owner(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
    /// Takes a new object.
    explicit shared_owner(std::unique_ptr<T> made) noexcept : object_(made.release()) {}

    [[nodiscard]] const T* get() const noexcept { return static_cast<const T*>(object_.get()); }
    const T& operator*() const noexcept { return *get(); }
    const T* operator->() const noexcept { return get(); }
    /// Whether this is the only owner: then the object may change.
    [[nodiscard]] bool is_sole() const noexcept { return object_ && object_->has_one_owner(); }
    /// The object, for the only owner.
    [[nodiscard]] T& sole() noexcept { return const_cast<T&>(*get()); }
    explicit operator bool() const noexcept { return static_cast<bool>(object_); }
    friend bool operator==(const shared_owner&, const shared_owner&) = default;

private:
    template <class>
    friend class all_shares;
    template <class>
    friend class shares;

    owner<const shared_object> object_;
};

/// A number of further owners of one object, made at once with one atomic change. The caller must take all of them. The owner that they
/// are made from must outlive this.
template <class T>
class all_shares {
public:
    /// `is_sole`: `of` is the only owner. `count` is not 0.
    all_shares(const shared_owner<T>& of, std::size_t count, bool is_sole) noexcept : object_(of.object_.get()) {
        if (object_ == nullptr) {
            return;
        }
        if (is_sole) {
            object_->become_owners(static_cast<std::uint32_t>(count) + 1);
        } else {
            object_->add_owners(static_cast<std::uint32_t>(count));
        }
    }
    all_shares(const all_shares&) = delete;
    all_shares& operator=(const all_shares&) = delete;

    /// The next owner. Must be called `count` times.
    [[nodiscard]] shared_owner<T> take() const noexcept {
        shared_owner<T> taken;
        taken.object_ = owner<const shared_object>::adopt(object_);
        return taken;
    }

private:
    const shared_object* object_;
};
template <class T>
all_shares(const shared_owner<T>&, std::size_t, bool) -> all_shares<T>;

/// The same for a caller that may not take all of them.
template <class T>
class shares {
public:
    shares(const shared_owner<T>& of, std::size_t count) noexcept
        : object_(of.object_.get()), left_(static_cast<std::uint32_t>(count)) {
        if (object_ != nullptr && left_ != 0) {
            object_->add_owners(left_);
        }
    }
    ~shares() {
        if (object_ != nullptr && left_ != 0) {
            object_->drop_owners(left_);
        }
    }
    shares(const shares&) = delete;
    shares& operator=(const shares&) = delete;

    /// The next owner. May be called at most `count` times.
    [[nodiscard]] shared_owner<T> take() noexcept {
        --left_;
        shared_owner<T> taken;
        taken.object_ = owner<const shared_object>::adopt(object_);
        return taken;
    }

private:
    const shared_object* object_;
    std::uint32_t left_;
};

}  // namespace weir::detail
