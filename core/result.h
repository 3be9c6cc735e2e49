// Result<T>: a value or an Error, with the method names of std::expected. Library code returns it; nothing throws.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ctk {

// What went wrong, by who has to act. Each code has one exit code of the command line (see exit_code()).
enum class ErrorCode {
  internal,           // a bug of ours
  config,             // wrong use of the command line or the pipeline file
  input,              // unusable model, data or file; unsupported operator; failed reading or writing
  budget_infeasible,  // no allowed choice meets a budget
  gate_refused,       // the result is worse than its gate allows
  interrupted,        // stopped by the user; the state can be resumed
};

// The process exit code for an error: 1, 2, 3, 4, 5, 130.
int exit_code(ErrorCode code);

// A message in four parts: where, what was expected, what was found, what to do. add_context() puts "where" in front.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;

  Error&& with_context(const std::string& where) && {
    message = where + ": " + message;
    return std::move(*this);
  }
};

inline Error input_error(std::string message) {
  return {ErrorCode::input, std::move(message)};
}
inline Error config_error(std::string message) {
  return {ErrorCode::config, std::move(message)};
}
inline Error internal_error(std::string message) {
  return {ErrorCode::internal, std::move(message)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace ctk

#define CTK_CONCAT_INNER(a, b) a##b
#define CTK_CONCAT(a, b) CTK_CONCAT_INNER(a, b)

// CTK_TRY(auto x, expression): declares x from the value, or returns the error from the enclosing function.
#define CTK_TRY(declaration, ...)                                                                \
  auto CTK_CONCAT(ctk_try_, __LINE__) = (__VA_ARGS__);                                           \
  if (!CTK_CONCAT(ctk_try_, __LINE__)) return std::move(CTK_CONCAT(ctk_try_, __LINE__)).error(); \
  declaration = std::move(*CTK_CONCAT(ctk_try_, __LINE__))

// CTK_CHECK(expression): returns the error of a Status (or of any Result whose value is not needed).
#define CTK_CHECK(...)                                       \
  do {                                                       \
    auto ctk_status_ = (__VA_ARGS__);                        \
    if (!ctk_status_) return std::move(ctk_status_).error(); \
  } while (false)
