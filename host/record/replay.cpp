#include "host/record/replay.h"

#include <sys/mman.h>
#include <unistd.h>

#include "host/base/tensor_memory.h"
#include "host/options/options.h"
#include "host/record/fields.h"
#include "host/record/played_parts.h"

namespace numsan {
namespace {

/// The recorded allow-list under a name that can be read.
class AllowListFile {
  public:
    explicit AllowListFile(const std::string& text) : descriptor_(memfd_create("allow-list", MFD_CLOEXEC)) {
        if (descriptor_ < 0 || ::write(descriptor_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            throw RecordError("no memory for its allow-list");
    }
    ~AllowListFile() { close(descriptor_); }
    AllowListFile(const AllowListFile&) = delete;
    AllowListFile& operator=(const AllowListFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  private:
    int descriptor_;
};

/// While it plays, elements are those of the recording.
class PlayedElements {
  public:
    PlayedElements() { load_element_by = PlayedScanner::load; }
    ~PlayedElements() { load_element_by = before_; }
    PlayedElements(const PlayedElements&) = delete;
    PlayedElements& operator=(const PlayedElements&) = delete;

  private:
    const LoadElement before_ = load_element_by;
};

/// What a replay leaves: threads of the run may wait inside it for ever.
struct Stage {
    Stage(RecordReader& reader, const Options& options, SessionFacts facts)
        : player(reader, {PlayedAdapter::autograd_facts, PlayedAdapter::api}),
          session(options, scanner, stacks, std::move(facts)) {}
    Player player;
    PlayedScanner scanner;
    PlayedStacks stacks;
    Session session;

    /// Never destroyed.
    static Stage& make(RecordReader& reader, const Options& options, SessionFacts facts) {
        static std::vector<Stage*>& all = *new std::vector<Stage*>;
        return *all.emplace_back(new Stage(reader, options, std::move(facts)));
    }
};

Options options_of(const RunFacts& facts) {
    Options options;
    for (const auto& [key, value] : facts.options) (void)set_option(options, key, value);
    options.report = options.log = "none";
    options.record.clear();
    return options;
}

}  // namespace

Replay::Replay(RecordReader& reader) : reader_(reader) {
    if (!reader_.next()) throw reader_.damaged("it ends before the run's facts");
    if (reader_.kind() != RecordKind::Run) throw reader_.damaged("it does not begin with the run's facts");
    reader_.read(facts_);
}

Replayed Replay::play() {
    const PlayedElements elements;
    Options options = options_of(facts_);
    std::optional<AllowListFile> allow;
    if (!options.allow.empty()) options.allow = allow.emplace(facts_.allow_list).path();
    SessionFacts facts;
    facts.torch_version = facts_.torch_version;
    facts.torch_root = facts_.torch_root;
    facts.standard_library = facts_.standard_library;
    facts.python_version = facts_.python_version;
    facts.blind_spots = facts_.blind_spots;
    facts.run = facts_.run;
    facts.generated_kernels = PlayedAdapter::generated_kernels;
    facts.leave = PlayedAdapter::leave;
    facts.over_notes = PlayedAdapter::notes;
    Stage& stage = Stage::make(reader_, options, std::move(facts));
    the_player = &stage.player;
    Session& session = stage.session;
    session.use_devices(PlayedAdapter::no_device_scanner);
    session.use_coverage(PlayedAdapter::add_coverage);
    session.use_rank(PlayedAdapter::rank);
    the_player->play(session, stage.stacks);
    Replayed result = the_player->result();
    if (!result.end) session.finish(0);  // what is known up to there
    result.report = session.reporter().json();
    return result;
}

}  // namespace numsan
