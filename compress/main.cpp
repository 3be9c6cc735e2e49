// compress: the command line. Verbs are in compress/cli/, exit codes in core/result.h.
#include "compress/cli/command_line.h"

#include <vector>

int main(int count, char** words) {
  return ctk::cli::command_line(std::vector<std::string>(words, words + count), nullptr);
}
