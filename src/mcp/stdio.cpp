// SPDX-License-Identifier: Apache-2.0
#include "mcp/stdio.hpp"

#include <unistd.h>

#include <cerrno>
#include <thread>

#include "domain/limits.hpp"
#include "mcp/lines.hpp"
#include "mcp/server.hpp"
#include "os/pipe_signal.hpp"
#include "os/stop_event.hpp"

namespace ke::mcp {
namespace {

bool write_line(int fd, std::string line) {
  line += '\n';
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(fd, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    written += static_cast<size_t>(count);
  }
  return true;
}

void read_lines(Server& server, LineReader& reader) {
  std::string line;
  for (;;) {
    switch (reader.next(line)) {
      case LineEnd::line:
        server.receive(line);
        break;
      case LineEnd::too_long:
        server.receive_too_long();
        break;
      case LineEnd::end:
        return server.finish();
      case LineEnd::stopped:
        return server.stop();
    }
  }
}

}  // namespace

void serve(Backend& backend, const Streams& streams, const std::string& version, EventSink& events,
           const std::stop_token& stop) {
  const os::PipeSignalBlocked blocked;
  ServerOptions options;
  options.version = version;
  options.write = [&](const std::string& line) { return write_line(streams.output, line); };
  const int64_t line_max = options.limits.request_bytes_max;
  Server server(backend, events, std::move(options));
  std::stop_source ends;
  const std::stop_callback forward(stop, [&ends] { ends.request_stop(); });
  const os::StopEvent event(ends.get_token());
  LineReader reader(streams.input, event.fd(), line_max);
  std::jthread reading([&] { read_lines(server, reader); });
  server.work();
  ends.request_stop();  // should work have ended first
}

}  // namespace ke::mcp
