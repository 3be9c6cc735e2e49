// Ctrl-C: stages ask interrupted() between units of work and end with a resumable state.
#pragma once

#include "core/result.h"

namespace ctk {

// True once SIGINT or SIGTERM came in. Cheap enough to ask in any loop.
bool interrupted();
// Error interrupted when interrupted(), else success: CTK_CHECK(check_interrupt()).
Status check_interrupt();
// First signal sets the flag, a second one ends the process at once. For the command line only.
void catch_interrupts();
void set_interrupted(bool value);  // for Python and tests

}  // namespace ctk
