package session

import (
	"context"
	"io"
	"time"

	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Remote opens files that are not on the host.
type Remote interface {
	// Open opens the file at a URL. If it does not exist, the error wraps fs.ErrNotExist.
	Open(ctx context.Context, url string) (io.ReadCloser, error)
}

// Settings are the parameters of a session. Options have the names of a Salt minion's options; templates see them
// as opts.
type Settings struct {
	Host   *host.Host
	Tables Tables // the available functions; nil for none
	ID     string
	Grains *value.Map
	States []roots.Env
	Pillar []roots.Env
	// directories of releases on the host; the owner of a whole release is trusted with its files
	Releases []string
	Override *value.Map       // pillar given on the command line; overrides all files
	Redactor *redact.Redactor // receives the decrypted values; nil for a new one
	Vars     *value.Map       // variables of every template besides the usual ones; may be nil
	Options  *value.Map
	TopRoots bool // the top files of all roots are used, beginning with the last root
	// PillarFile is called with the name of each SLS file of the pillar that is rendered; it may be nil.
	PillarFile func(sls string)
	// Declare adds to a highstate the declarations of releases that are not in SLS files; nil for none.
	Declare func(*compile.High) error
	Trees   host.Files // the files that contain States and Pillar; nil for the host's own files
	// GrainsFile is the file that functions such as grains.setval change.
	GrainsFile function.GrainsFile

	Remote  Remote           // opens sources that are in no tree; nil if they are refused
	Buckets external.Buckets // read by the source s3 of ext_pillar; nil if there is no access to buckets
	Log     func(level, message string)
	Version string // of the program
	Shell   bool   // cmd.run uses a shell if it is the function that Call is given

	// Until ends questions about the tree's Python modules that have no context of their own; nil if only their time
	// limit does.
	Until context.Context

	Test     bool
	Failhard bool
	Parallel int // see exec.Runner
	// Running returns a text for each run that is changing the host, for state.running; nil for none.
	Running func() []string
	Grace   time.Duration // see exec.Runner
	Strict  bool          // a step that is certain to fail is an error before anything runs
}

// MinionOptions returns the options of a Salt minion, which templates see as opts.
func (s *Settings) MinionOptions() *value.Map {
	o := value.NewMap("id", s.ID, "file_client", "local", "test", s.Test, "failhard", s.Failhard,
		"saltenv", nil, "pillarenv", nil, "renderer", "jinja|yaml", "state_top", "salt://top.sls", "default_top", "base",
		"top_file_merging_strategy", "merge", "pillar_opts", false, "extension_modules", "/var/cache/corpus/extmods",
		"providers", value.NewMap(), "retry_dns", 30,
		"cachedir", "/var/cache/corpus", "root_dir", "/", "conf_file", "/etc/corpus/agent.yaml",
		"config_dir", "/etc/corpus", "local", true, "__role",
		"minion", "__cli", "salt-call", "hash_type", "sha256", "fileserver_backend", value.NewList("roots"),
		"file_buffer_size", 262144, "file_recv", false, "log_level", "warning", "state_output", "full", "state_verbose",
		true, "state_auto_order", true, "module_dirs", value.NewList(), "user", "root", "master", "salt", "multiprocessing",
		true, "pki_dir", "/etc/salt/pki/minion", "ipv6", nil, "beacons", value.NewMap(), "schedule", value.NewMap())
	o.Set("file_roots", envMap(s.States))
	o.Set("pillar_roots", envMap(s.Pillar))
	o.Update(s.Options)
	o.Set("grains", s.Grains)
	return o
}

// allDirs returns the directories of environments.
func allDirs(envs []roots.Env) (dirs []string) {
	for _, e := range envs {
		dirs = append(dirs, e.Dirs...)
	}
	return dirs
}

func envMap(envs []roots.Env) *value.Map {
	m := value.NewMap()
	for _, e := range envs {
		m.Set(e.Name, value.Strings(e.Dirs...))
	}
	return m
}

// option returns an option that is a string, or "" for any other.
func (s *Session) option(name string) string {
	text, _ := s.options.Value(name).(string)
	return text
}

// flag reports whether an option is true. It returns fallback if the option is not set.
func (s *Session) flag(name string, fallback bool) bool {
	v, ok := s.options.Get(name)
	if !ok || v == nil {
		return fallback
	}
	return value.Truth(v)
}
