// SPDX-License-Identifier: Apache-2.0
//
// Oracles forked by a zygote: what their room shows, that they cannot reach each other, and who
// outlives whom. Most of it is asked of oracles that were started from the interpreter, too.
#include <csignal>
#include <thread>

#include "oracle/oracle_fixture.hpp"
#include "os/sandbox.hpp"

namespace ke {
namespace {

constexpr const char* kModel = R"py(
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(4)]

def get_init_inputs():
    return []
)py";

// Raises at import with every fact about its room that is not as it must be.
constexpr const char* kLooksAround = R"py(
import builtins, os, resource, signal, socket, sys, tempfile, threading

wrong = []
def must(what, holds):
    if not holds:
        wrong.append(what)

def refused(action, *arguments):
    try:
        action(*arguments)
    except OSError:
        return True
    return False

status = dict(line.split(":", 1) for line in open("/proc/self/status"))
must("is clean of other problems", not hasattr(builtins, "left_by_another"))
must("has no capability", int(status["CapEff"], 16) == 0 and int(status["CapBnd"], 16) == 0)
must("gains no privilege", status["NoNewPrivs"].strip() == "1")
processes = [name for name in os.listdir("/proc") if name.isdigit()]
must(f"sees its room's processes alone, not {processes}", len(processes) <= 3)
for pid in range(1, 60):
    if str(pid) not in processes:
        must(f"signals nobody ({pid})", refused(os.kill, pid, 0))
must("leads a session", os.getsid(0) == os.getpid() and os.getpgid(0) == os.getpid())
must("finds nothing of another's in /tmp", "left" not in os.listdir("/tmp"))
must("uses its own /tmp", tempfile.gettempdir() == "/tmp" and os.environ["HOME"] == "/tmp")
must("finds no variable of others", "KE_PYTHON" not in os.environ and "PWD" not in os.environ)
must("is in a room", socket.gethostname() == "room")
must("has no network", all(name == "lo" for _, name in socket.if_nameindex()))
must("cannot write beside itself", refused(open, __file__, "a"))
must("cannot write outside", refused(os.mkdir, "/usr/left"))
cache = os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"])
code = [name for name in os.listdir(cache) if name.startswith("oracle-")]
must("knows where the oracle's code lies", len(code) == 1)
must("cannot change it", all(refused(os.mkdir, f"{cache}/{name}/left") for name in code))
must("obeys the second wall", not landlock or refused(open, "/dev/urandom", "wb"))
must("has a limit on memory", resource.getrlimit(resource.RLIMIT_DATA)[0] == 3 << 30)
must("keeps no core", resource.getrlimit(resource.RLIMIT_CORE)[1] == 0)
must("has one processor", len(os.sched_getaffinity(0)) == 1)
must("starts with one thread", len(os.listdir("/proc/self/task")) == 1)
must("reads its own memory", not refused(open, "/proc/self/mem", "rb"))
must("dies of SIGINT", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
must("waits for children", signal.getsignal(signal.SIGCHLD) is signal.SIG_DFL)
fds = {}
for name in os.listdir("/proc/self/fd"):
    try:
        fds[name] = os.readlink("/proc/self/fd/" + name)
    except OSError:
        pass  # the one that listed
kinds = sorted(target.split(":")[0] for name, target in fds.items() if int(name) > 2)
kinds = [kind for kind in kinds if not kind.endswith("/fd")]
must(f"holds sockets alone, not {fds}", kinds == ["socket"] * 2)
builtins.left_by_another = True
sys.modules["left_by_another"] = builtins
open("/tmp/left", "w").close()
if wrong:
    raise RuntimeError("; ".join(wrong))
)py";

// Threads of its own that never rest: one counts in a file that the test can read.
constexpr const char* kCounts = R"py(
import mmap, os, threading
path = os.path.join(os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"]), "count")
file = open(path, "w+b")
file.truncate(4096)
count = mmap.mmap(file.fileno(), 4096)
def run():
    n = 0
    while True:
        n += 1
        count[:8] = n.to_bytes(8, "little")
for _ in range(2):
    threading.Thread(target=run, daemon=True).start()
)py";

class ZygoteTest : public OracleTest {
 protected:
  void SetUp() override {
    Result<os::TemporaryDirectory> made = os::TemporaryDirectory::create("ke-zygote-test");
    ASSERT_TRUE(made) << made.error().to_string();
    folder_.emplace(std::move(*made));
  }

  // A problem file that runs `code` at import.
  OracleOptions problem(const std::string& name, const std::string& code) {
    OracleOptions options = options_for("relu.py");
    options.problem_path = folder_->path() / name;
    EXPECT_TRUE(os::write_file_atomically(options.problem_path, code + kModel));
    return options;
  }
  static std::unique_ptr<Oracle> started(const OracleOptions& options) {
    Result<std::unique_ptr<Oracle>> oracle = start_oracle(options);
    if (oracle) return std::move(*oracle);
    ADD_FAILURE() << oracle.error().to_string();
    return nullptr;
  }

  std::optional<os::TemporaryDirectory> folder_;
};

// Processes whose command line holds `text`.
std::vector<pid_t> processes_with(const std::string& text) {
  std::vector<pid_t> found;
  const auto names = os::list_directory("/proc");
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto line = os::read_file("/proc/" + name + "/cmdline", 1 << 20);
    if (line && line->find(text) != std::string::npos) found.push_back(std::stoi(name));
  }
  return found;
}

TEST_F(ZygoteTest, LocksAnOracleUpAsOneStartedFromTheInterpreter) {
  const Result<os::RoomReport> rooms = os::probe_protections();
  ASSERT_TRUE(rooms);
  const bool landlock = rooms->has(os::Protection::landlock);
  const std::string code =
      std::string("landlock = ") + (landlock ? "True" : "False") + "\n" + kLooksAround;
  for (oracle::Zygote* zygote : {zygote_, static_cast<oracle::Zygote*>(nullptr)}) {
    SCOPED_TRACE(zygote != nullptr ? "forked" : "started");
    OracleOptions options = problem("looks_around.py", code);
    options.zygote = zygote;
    options.limits.oracle_memory_bytes = 3_GiB;
    // The first one stays, so that the second one could see it.
    const auto first = started(options), second = started(options);
    ASSERT_TRUE(first && second);
    EXPECT_TRUE(second->make_set({.seed = 1}));
    EXPECT_TRUE(first->make_set({.seed = 1}));
  }
  EXPECT_EQ(zygote_->why_not(), "");
}

TEST_F(ZygoteTest, AnswersTheSameHoweverAnOracleCameToBe) {
  OracleOptions options = options_for("linear_norm.py");
  const auto forked = started(options);
  options.zygote = nullptr;
  const auto alone = started(options);
  ASSERT_TRUE(forked && alone);
  EXPECT_EQ(forked->problem().flops, alone->problem().flops);
  for (const SetKind kind : {SetKind::nominal, SetKind::scaled, SetKind::special}) {
    SCOPED_TRACE(enum_name(kind));
    const InputSet a = made(*forked, {.kind = kind, .seed = 7});
    const InputSet b = made(*alone, {.kind = kind, .seed = 7});
    ASSERT_EQ(a.inputs.size(), b.inputs.size());
    for (size_t i = 0; i < a.inputs.size(); ++i) EXPECT_TRUE(same_bytes(a.inputs[i], b.inputs[i]));
    ASSERT_EQ(a.truths.size(), b.truths.size());
    EXPECT_EQ(a.truths[0].pytorch_max, b.truths[0].pytorch_max);
    EXPECT_EQ(a.truths[0].rms_truth, b.truths[0].rms_truth);
  }
}

TEST_F(ZygoteTest, IsOutlivedByItsOraclesAndStartedAgain) {
  const auto before = started(options_for("relu.py"));
  ASSERT_TRUE(before);
  const pid_t first = zygote_->pid();
  ASSERT_GT(first, 0);
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  EXPECT_TRUE(before->make_set({.seed = 1}));
  const auto after = started(options_for("relu.py"));
  ASSERT_TRUE(after);
  EXPECT_NE(zygote_->pid(), first);
  EXPECT_EQ(zygote_->why_not(), "");
  EXPECT_TRUE(after->make_set({.seed = 1}));
  EXPECT_TRUE(before->make_set({.seed = 2}));
}

TEST_F(ZygoteTest, LosesOneOracleAtATime) {
  auto one = started(options_for("relu.py"));
  const auto other = started(options_for("relu.py"));
  ASSERT_TRUE(one && other);
  one.reset();
  EXPECT_TRUE(other->make_set({.seed = 1}));
  const auto leaves =
      start_oracle(problem("leaves.py", "import os, signal\nos.kill(os.getpid(), 11)\n"));
  ASSERT_FALSE(leaves);
  EXPECT_NE(leaves.error().to_string().find("ended the program during import of the problem "
                                            "(signal 11"),
            std::string::npos)
      << leaves.error().to_string();
  EXPECT_TRUE(other->make_set({.seed = 2}));
}

TEST_F(ZygoteTest, PausesAProblemsOwnThreads) {
  const auto counting = started(problem("counts.py", kCounts));
  const auto other = started(options_for("relu.py"));
  ASSERT_TRUE(counting && other);
  const auto count = [&] {
    const auto text = os::read_file(cache_->path() / "count", 4096);
    uint64_t value = 0;
    if (text && text->size() >= sizeof value) std::memcpy(&value, text->data(), sizeof value);
    return value;
  };
  constexpr auto kMoment = std::chrono::milliseconds(200);
  for (int round = 0; round < 3; ++round) {
    counting->pause();
    std::this_thread::sleep_for(kMoment);  // a signal takes effect within a tick of the clock
    const uint64_t paused = count();
    EXPECT_GT(paused, 0u);
    EXPECT_TRUE(other->make_set({.seed = 1, .with_truth = false}));
    std::this_thread::sleep_for(kMoment);
    EXPECT_EQ(count(), paused);
    counting->resume();
    while (count() == paused) std::this_thread::sleep_for(kMoment);
  }
  counting->freeze(true);
  std::this_thread::sleep_for(kMoment);
  const uint64_t frozen = count();
  std::this_thread::sleep_for(kMoment);
  EXPECT_EQ(count(), frozen);
  counting->freeze(false);
  EXPECT_TRUE(counting->make_set({.seed = 1}));
}

TEST_F(ZygoteTest, FailsWithTheSameWordsAsAnInterpreter) {
  const std::string bin = folder_->path() / "bin";
  ASSERT_TRUE(os::make_directories(bin));
  struct Case {
    const char* name;
    const char* script;
    const char* sentence;
  } cases[] = {
      {"ends", "echo broken >&2\nexit 3", "ended (exit code 3): broken"},
      {"lacks_torch", "exec /usr/bin/env python3 -S \"$@\"", "PyTorch cannot be imported by"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    OracleOptions options = options_for("relu.py");
    options.python = bin + "/" + c.name;
    ASSERT_TRUE(os::write_file_atomically(options.python,
                                          std::string("#!/bin/sh\n") + c.script + "\n", 0755));
    for (oracle::Zygote* zygote : {zygote_, static_cast<oracle::Zygote*>(nullptr)}) {
      options.zygote = zygote;
      const auto oracle = start_oracle(options);
      ASSERT_FALSE(oracle);
      EXPECT_EQ(oracle.error().code, Errc::unavailable);
      const std::string message = oracle.error().to_string();
      EXPECT_NE(message.find(c.sentence), std::string::npos) << message;
    }
    EXPECT_NE(zygote_->why_not(), "");
  }
  EXPECT_TRUE(started(options_for("relu.py")));
  EXPECT_EQ(zygote_->why_not(), "");
}

TEST_F(ZygoteTest, LeavesNoProcessBehind) {
  auto own = std::make_unique<oracle::Zygote>();
  std::string folder;
  {
    OracleOptions options = options_for("relu.py");
    options.zygote = own.get();
    const auto a = started(options), b = started(options);
    ASSERT_TRUE(a && b);
    const auto line = os::read_file("/proc/" + std::to_string(own->pid()) + "/cmdline", 1 << 20);
    ASSERT_TRUE(line);
    folder = line->substr(line->find("/kernelevolve-zygote"));
    folder = folder.substr(0, folder.find('/', 1));
    // The zygote; an usher, an oracle and its process of torch.compile each.
    EXPECT_EQ(processes_with(folder).size(), 7u);
  }
  // Oracles have gone with their objects; ushers go when they have noticed.
  while (processes_with(folder).size() > 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(processes_with(folder), std::vector<pid_t>{own->pid()});
  own.reset();
  EXPECT_EQ(processes_with(folder), std::vector<pid_t>{});
}

}  // namespace
}  // namespace ke
