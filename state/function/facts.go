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

// Facts is what functions answer from. Functions that need a field that is nil return an error, or answer as on a host
// that has nothing of the kind.
type Facts struct {
	ID     string
	Grains *value.Map
	// GrainsFile is what functions such as grains.setval change.
	GrainsFile GrainsFile
	// Pillar is the pillar as it is when asked: pillar files call functions, too.
	Pillar func() *value.Map
	// Refresh renders the pillar again, of one environment if it is named, with data that overrides it.
	// Where it is nil, functions use Pillar.
	Refresh func(ctx context.Context, env string, override *value.Map) (*value.Map, error)
	Options *value.Map // what Salt calls opts

	States  *roots.Roots
	Pillars *roots.Roots
	Trees   host.Files // that they lie in; nil for the host's own
	// Render puts a file through a pipe of renderers, such as jinja|yaml, unless its first line
	// names another. It is asked to only after the table was made.
	Render func(ctx context.Context, src render.Source, pipe string, vars *value.Map) (any, error)
	Match  func(q Query) (bool, error)

	Host     *host.Host
	Packages Packages
	Units    Units
	Network  Network
	Resolver Resolver
	Web      Web

	// Modules are the state functions, which carry out some of the functions that change the host.
	Modules func() module.Registry

	// Serializer is a format of file.serialize; it reports false for none. Where it is nil, slsutil has only the formats
	// that need none of it.
	Serializer func(format string) (Serializer, bool)

	// Calls are the signatures of functions that are called where there is no table, those of state, which sys describes.
	Calls map[string]string

	// Log receives what templates write to the log and the commands that they run. The levels are those of Python's
	// logging, in lower case.
	Log func(level, message string)
	Now func() time.Time // time.Now if nil
	// Shell has cmd.run and its variants go through a shell unless they say otherwise, as when a person
	// types them; in templates, Salt splits their words and runs the program itself.
	Shell bool
	// Retcode, if not nil, takes the code of a command that a function ran and that failed: what Salt's modules put
	// into __context__, and salt-call ends with.
	Retcode func(code int)
	// Version is the program's own.
	Version string
}

// Serializer writes and reads a format; options are those of serializer_opts and deserializer_opts.
type Serializer interface {
	Dump(v any, options *value.Map) (string, error)
	Load(text string, options *value.Map) (any, error)
}

// Query asks whether a host is meant by an expression.
type Query struct {
	Kind       string // as in top files: compound, glob, grain ...
	Expression string
	Delimiter  string // between the keys of grains and pillar
	ID         string // of the host, if not this one
}

// Packages answers about software. Names are those of the package manager.
type Packages interface {
	// Versions are the versions of all installed packages, by name.
	Versions() (map[string]string, error)
	// Candidates are the versions that the repositories would install, by name; those they do not
	// have are absent. It does not refresh the indexes.
	Candidates(ctx context.Context, names []string, release string) (map[string]string, error)
	// Upgrades are the new versions of the packages that an upgrade would change, by name; full also counts those that
	// need others installed or removed. It does not refresh the indexes.
	Upgrades(ctx context.Context, full bool) (map[string]string, error)
	// Compare orders two versions: -1, 0 or 1.
	Compare(a, b string) int
}

// Units answers about services.
type Units interface {
	// Unit describes a service; found is false for one that is not there.
	Unit(ctx context.Context, name string) (u Unit, found bool, err error)
	// Names lists all services, without .service.
	Names(ctx context.Context) ([]string, error)
}

// Unit is how a service is doing.
type Unit struct{ Running, Enabled, Masked bool }

// Network answers about the host's links.
type Network interface {
	Links() ([]Link, error)
}

type (
	// Link is a network interface.
	Link = links.Link
	// Address is one of a link's addresses.
	Address = links.Address
)

// Resolver asks the domain name system. An error means that there is no such record or no server answered.
type Resolver interface {
	// Lookup gives the records of a kind (A, AAAA, CNAME, MX, NS, PTR, TXT) as dig +short prints
	// them. server is an address to ask, "" for the host's own.
	Lookup(ctx context.Context, kind, name, server string) ([]string, error)
}

// Web fetches pages.
type Web interface {
	// Get gives the answer to a GET request. The body is cut at a limit.
	Get(ctx context.Context, r Request) (Response, error)
}

type (
	// Request is a GET request.
	Request = network.Request
	// Response is the answer to one.
	Response = network.Response
)

// WriteLog writes a message to the log.
func (f *Facts) WriteLog(level, message string) {
	if f.Log != nil {
		f.Log(level, message)
	}
}

// Time is the current time.
func (f *Facts) Time() time.Time {
	if f.Now != nil {
		return f.Now()
	}
	return time.Now()
}

// CurrentPillar is the pillar, or nil where there is none.
func (f *Facts) CurrentPillar() *value.Map {
	if f.Pillar == nil {
		return nil
	}
	return f.Pillar()
}

// Environment is the environment to look in where a call names none.
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
	Host *host.Host // on which it lies; nil is the host of the functions
}
