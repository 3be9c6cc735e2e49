#include "core/log.h"

#include <utility>

namespace ctk {
namespace {
LogSink g_sink;
}

void set_log_sink(LogSink sink) {
  g_sink = std::move(sink);
}

void log_info(const std::string& text) {
  if (g_sink) g_sink(LogLevel::info, text);
}

void log_warning(const std::string& text) {
  if (g_sink) g_sink(LogLevel::warning, text);
}

}  // namespace ctk
