#include "compress/python_peer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "core/file.h"

namespace ctk::pipeline {

namespace fs = std::filesystem;

int run_program(const std::vector<std::string>& words, const std::string& log) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out >= 0) {
      ::dup2(out, 1);
      ::dup2(out, 2);
    }
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  if (child < 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string last_line(const std::string& path) {
  auto text = read_text(path);
  if (!text) return "no message";
  std::string line, last;
  for (char c : *text + "\n") {
    if (c != '\n')
      line += c;
    else if (!line.empty())
      last = std::exchange(line, "");
  }
  return last.empty() ? "no message" : last;
}

std::string find_python(const std::string& modules, const std::string& package, std::string* reason) {
  std::vector<std::string> candidates;
  if (const char* given = std::getenv("CTK_PYTHON")) candidates.push_back(given);
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) candidates.push_back((self.parent_path() / "python3").string());
  if (const char* venv = std::getenv("VIRTUAL_ENV")) candidates.push_back(std::string(venv) + "/bin/python3");
  candidates.push_back("python3");
  for (const std::string& python : candidates) {
    if (run_program({python, "-c", "import " + modules}, "/dev/null") == 0) return python;
  }
  if (reason != nullptr)
    *reason = "no Python with " + package + " was found; `pip install " + package + "`, or set CTK_PYTHON";
  return "";
}

ScratchFolder::ScratchFolder(std::string where) : path(std::move(where)) {
  std::error_code error;
  fs::create_directories(path, error);
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  fs::remove_all(path, error);
}

}  // namespace ctk::pipeline
