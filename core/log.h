// Log sink: library code reports notable events here; who listens decides what is shown. Silent by default.
#pragma once

#include <functional>
#include <string>

namespace ctk {

enum class LogLevel { info, warning };
using LogSink = std::function<void(LogLevel, const std::string&)>;

void set_log_sink(LogSink sink);  // an empty function silences it; not thread-safe, set it at the start
void log_info(const std::string& text);
void log_warning(const std::string& text);

}  // namespace ctk
