// calibrate: {method: auto}: the observer of each value, by what its range makes the network lose.
#pragma once

#include <vector>

#include "calibrate/calibration.h"
#include "compress/session.h"

namespace ctk::pipeline {

inline constexpr std::string_view kAutoObserver = "auto";

// One range a value out of those of every observer, [observers][values]: the one whose rounding loses least on the
// score split (the calibration split where there is none), earlier observers first among equals. Where no output
// depends on a value, its range is the first observer's. What was chosen from stands in Range::note.
// Errors: input (an operator without a rule for gradients: name an observer instead), interrupted.
Result<std::vector<calibrate::Range>> choose_observers(const Session& session,
                                                       std::span<const std::vector<calibrate::Range>> by_observer);

}  // namespace ctk::pipeline
