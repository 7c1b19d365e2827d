// SPDX-License-Identifier: Apache-2.0
//
// `kernelevolve mcp`: standard output belongs to the protocol; everything else goes to stderr.
#include <unistd.h>

#include "app/embeddings.hpp"
#include "app/workbench.hpp"
#include "cli/commands.hpp"
#include "cli/convert.hpp"
#include "mcp/stdio.hpp"
#include "mcp/tools.hpp"
#include "os/terminal.hpp"

namespace ke::cli {

Result<int> run_command(const McpArguments& arguments, const Environment& environment) {
  app::SessionOptions options = TRY(session_options(arguments.judge, ""));
  if (os::is_terminal(STDIN_FILENO)) {
    return Error{Errc::invalid,
                 "mcp talks to a coding agent, not to a terminal; name the command in the agent's "
                 "configuration, as the README shows."};
  }
  app::Workbench workbench(std::move(options), arguments.judge.workspace);
  const auto toolbox = mcp::make_toolbox(
      workbench, TRY(app::open_vectorizer(arguments.embeddings, arguments.judge.workspace,
                                          environment.events)));
  mcp::serve(*toolbox, {.input = STDIN_FILENO, .output = STDOUT_FILENO}, KE_VERSION,
             environment.events, environment.stop);
  return 0;
}

}  // namespace ke::cli
