package function

import (
	"context"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/links"
	"github.com/corpus-agent/corpus-agent/state/host/network"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Facts gives functions access to the host and the session. If a function needs a field that is nil, it returns an
// error, or the result for a host that lacks the data.
type Facts struct {
	ID     string
	Grains *value.Map
	// GrainsFile is the file that functions such as grains.setval change.
	GrainsFile GrainsFile
	// Pillar returns the pillar. It is incomplete while it is compiled, since pillar files call functions, too.
	Pillar func() *value.Map
	// Refresh renders the pillar again, for one environment if env is not empty, with the data of override over it.
	// If it is nil, functions use Pillar.
	Refresh func(ctx context.Context, env string, override *value.Map) (*value.Map, error)
	Options *value.Map // Salt's opts: the configuration of the minion

	States  *roots.Roots
	Pillars *roots.Roots
	Trees   host.Files // the files that contain the trees; nil for those of the host
	// Trusted returns an error if an unprivileged user can change a file that Locate found for a URL; nil for no check.
	Trusted func(url, file string) error
	// Render renders a file with a pipe of renderers, such as jinja|yaml, unless its first line names another pipe.
	// It must not be called before the table is complete.
	Render func(ctx context.Context, src render.Source, pipe string, vars *value.Map) (any, error)
	Match  func(q Query) (bool, error)

	Host     *host.Host
	Packages Packages
	Units    Units
	Network  Network
	Resolver Resolver
	Web      Web

	// Modules returns the state functions, which implement some of the functions that change the host.
	Modules func() module.Registry
	Listed  func() module.Registry // Modules and all of the tree's own states, which it loads; nil for Modules

	// Serializer returns a format of file.serialize; its second result is false for an unknown format. If Serializer is
	// nil, slsutil has only the formats that do not need it.
	Serializer func(format string) (Serializer, bool)

	// Own returns the functions of the tree's own modules of a kind, such as modules or states, by their full names; nil
	// for none. They replace all functions with the same name before the dot.
	Own func(kind string) map[string]Described

	// Calls are the signatures of the functions of state. They are not in the table; sys describes them.
	Calls map[string]string

	// Log receives the log messages of templates and the commands that they run. The levels are those of Python's
	// logging, in lower case.
	Log func(level, message string)
	Now func() time.Time // time.Now if nil
	// Shell makes cmd.run and its variants use a shell by default, as when a user calls them. In templates, Salt
	// splits the command line and runs the program itself.
	Shell bool
	// Retcode, if not nil, receives the exit code of each command of a function. Salt's modules store it in
	// __context__, and salt-call exits with it.
	Retcode func(code int)
	// Version is the version of the program.
	Version string
}

// Serializer writes and reads a format; options are those of serializer_opts and deserializer_opts.
type Serializer interface {
	Dump(v any, options *value.Map) (string, error)
	Load(text string, options *value.Map) (any, error)
}

// Query is an expression that a host is matched with.
type Query struct {
	Kind       string // as in top files: compound, glob, grain ...
	Expression string
	Delimiter  string // between the keys of grains and pillar
	ID         string // of the host, if not this one
}

// Packages reads the package database. Names are those of the package manager.
type Packages interface {
	// Versions returns the versions of all installed packages, by name.
	Versions() (map[string]string, error)
	// Candidates returns the versions that would be installed from the repositories, by name; packages that they do
	// not have are absent. It does not refresh the indexes.
	Candidates(ctx context.Context, names []string, release string) (map[string]string, error)
	// Upgrades returns the new versions of the packages that an upgrade would change, by name; with full, also of
	// those that need other packages installed or removed. It does not refresh the indexes.
	Upgrades(ctx context.Context, full bool) (map[string]string, error)
	// Compare returns -1, 0 or 1 for the order of two versions.
	Compare(a, b string) int
}

// Units reads the state of services.
type Units interface {
	// Unit returns the state of a service; found is false if it does not exist.
	Unit(ctx context.Context, name string) (u Unit, found bool, err error)
	// Names returns the names of all services, without .service.
	Names(ctx context.Context) ([]string, error)
}

// Unit is the state of a service.
type Unit struct{ Running, Enabled, Masked bool }

// Network reads the host's links.
type Network interface {
	Links() ([]Link, error)
}

type (
	// Link is a network interface.
	Link = links.Link
	// Address is one of a link's addresses.
	Address = links.Address
)

// Resolver queries the domain name system. It returns an error if the record does not exist or no server answered.
type Resolver interface {
	// Lookup returns the records of a kind (A, AAAA, CNAME, MX, NS, PTR, TXT) as dig +short prints them. server is
	// the address of a name server; "" selects those of the host.
	Lookup(ctx context.Context, kind, name, server string) ([]string, error)
}

// Web fetches pages.
type Web interface {
	// Get returns the response to a GET request. Its body is truncated at a limit.
	Get(ctx context.Context, r Request) (Response, error)
}

type (
	// Request is a GET request.
	Request = network.Request
	// Response is the response to a request.
	Response = network.Response
)

// WriteLog writes a message to the log.
func (f *Facts) WriteLog(level, message string) {
	if f.Log != nil {
		f.Log(level, message)
	}
}

// Time returns the current time.
func (f *Facts) Time() time.Time {
	if f.Now != nil {
		return f.Now()
	}
	return time.Now()
}

// CurrentPillar returns the pillar, or nil if there is none.
func (f *Facts) CurrentPillar() *value.Map {
	if f.Pillar == nil {
		return nil
	}
	return f.Pillar()
}

// Environment returns the environment that a call uses: the one it names, or the default.
func (f *Facts) Environment(named string) string {
	if named != "" {
		return named
	}
	if env, ok := f.Options.Value("saltenv").(string); ok && env != "" {
		return env
	}
	return "base"
}

// GrainsFile is the file of grains that an operator maintains.
type GrainsFile struct {
	Path string     // "" is /etc/corpus/grains.yaml
	Host *host.Host // the host that has the file; nil for the host of the functions
}

// Described holds the parameters and the documentation of a function that is not in a table.
type Described struct {
	Module     string // the documentation of its module
	Parameters []Parameter
	Doc        string
}
