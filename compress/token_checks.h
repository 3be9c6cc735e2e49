// Texts against the network that reads them, before any work: ids it has rows for, windows it has positions for.
#pragma once

#include "compress/session.h"

namespace ctk::pipeline {

// Errors: input (names split, sample, the id or length, and what the network has).
Status check_tokens(const Session& session);

}  // namespace ctk::pipeline
