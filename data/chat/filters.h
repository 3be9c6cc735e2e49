// Filters by name. Internal to data/chat.
#pragma once

#include "data/chat/operations.h"

namespace ctk::data::chat {

using Filter = Result<Value> (*)(const Value& value, const Given& given);

// Those that are methods too.
Result<Value> filter_replace(const Value& value, const Given& given);
Result<Value> filter_lower(const Value& value, const Given& given);
Result<Value> filter_upper(const Value& value, const Given& given);
Result<Value> filter_title(const Value& value, const Given& given);
Result<Value> filter_capitalize(const Value& value, const Given& given);
Result<Value> filter_items(const Value& value, const Given& given);
Result<Value> filter_join(const Value& value, const Given& given);

}  // namespace ctk::data::chat
