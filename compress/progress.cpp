#include "compress/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace ctk::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

std::string duration(double seconds) {
  char text[48];
  if (seconds < 9.95) {
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else {
    const auto whole = static_cast<long long>(seconds);
    std::snprintf(text, sizeof text, "%lld:%02lld min", whole / 60, whole % 60);
  }
  return text;
}

class Lines : public ProgressSink {
 public:
  Lines(std::function<void(const std::string&)> write, bool is_live) : write_(std::move(write)), is_live_(is_live) {}
  ~Lines() override { clear(); }

  void stage_begin(const std::string& name, std::int64_t total) override {
    name_ = name;
    total_ = std::max<std::int64_t>(total, 0);
    tenth_ = 0;
    start_ = last_drawn_ = Clock::now();
    if (is_live_) {
      draw(0);
    } else {
      write_(name_ + " ...\n");
    }
  }

  void advance(std::int64_t done) override {
    if (total_ <= 0) return;
    done = std::clamp<std::int64_t>(done, 0, total_);
    if (is_live_) {
      const auto now = Clock::now();
      if (done < total_ && now - last_drawn_ < std::chrono::milliseconds(80)) return;
      last_drawn_ = now;
      return draw(done);
    }
    const int tenth = static_cast<int>(static_cast<double>(done) / static_cast<double>(total_) * 10);
    if (tenth <= tenth_ || tenth >= 10) return;
    tenth_ = tenth;
    write_(name_ + " " + std::to_string(tenth * 10) + " %" + time_left(done) + "\n");
  }

  void stage_end(const std::string& name, double seconds, bool cached) override {
    clear();
    write_(name + (cached ? " done before" : " done in " + duration(seconds)) + "\n");
  }

  void stage_stopped(const std::string& name, double seconds, const std::string& how) override {
    clear();
    write_(name + " " + how + " after " + duration(seconds) + "\n");
  }

  void note(const std::string& text) override {
    clear();
    write_("  " + text + "\n");
  }

 private:
  // Nothing until there is a second of experience to tell from.
  std::string time_left(std::int64_t done) const {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    if (done <= 0 || done >= total_ || elapsed < 1) return "";
    const double left = elapsed * static_cast<double>(total_ - done) / static_cast<double>(done);
    return ", " + duration(left) + " left";
  }

  void draw(std::int64_t done) {
    constexpr int kWidth = 30;
    const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 0;
    const int filled = static_cast<int>(share * kWidth);
    std::string line = "\r\033[K" + name_;
    line.resize(std::max<std::size_t>(line.size(), 4 + 13), ' ');
    if (total_ > 0) {
      line += "[" + std::string(static_cast<std::size_t>(filled), '#') +
              std::string(static_cast<std::size_t>(kWidth - filled), '.') + "] " +
              std::to_string(static_cast<int>(share * 100)) + " %" + time_left(done);
    } else {
      line += "...";
    }
    is_drawn_ = true;
    write_(line);
  }

  void clear() {
    if (is_drawn_) write_("\r\033[K");
    is_drawn_ = false;
  }

  std::function<void(const std::string&)> write_;
  bool is_live_, is_drawn_ = false;
  std::string name_;
  std::int64_t total_ = 0;
  int tenth_ = 0;
  Clock::time_point start_, last_drawn_;
};

}  // namespace

std::unique_ptr<ProgressSink> make_progress(std::function<void(const std::string&)> write, bool is_live) {
  return std::make_unique<Lines>(std::move(write), is_live);
}

std::unique_ptr<ProgressSink> make_stderr_progress() {
  const auto write = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  return make_progress(write, ::isatty(STDERR_FILENO) == 1);
}

}  // namespace ctk::pipeline
