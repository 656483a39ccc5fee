package gem

import (
	"context"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/program"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/client"
	"github.com/corpus-agent/corpus-agent/state/module/pep440"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// installed implements gem.installed.
type installed struct {
	gem
	Version     string `sls:"version"`
	RDoc        bool   `sls:"rdoc"`
	RI          bool   `sls:"ri"`
	PreReleases bool   `sls:"pre_releases"`
	Proxy       string `sls:"proxy"`
	Source      string `sls:"source"`
}

func (g *installed) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := g.Valid(); err != nil {
		return module.Diff{}, err
	}
	if what, err := client.Awaits(h, g.program()); err != nil || what != "" {
		return module.Awaits(what, "install "+g.Name), err
	}
	have, err := g.versions(ctx, h)
	if err != nil {
		return module.Diff{}, err
	}
	if len(have) > 0 && (g.Version == "" || slices.ContainsFunc(have, g.met)) {
		return module.Diff{Comment: g.Name + " is installed"}, nil
	}
	return module.Diff{Changes: value.NewMap(g.Name, "Installed"),
		Comment: strings.TrimSpace("would install " + g.Name + " " + g.Version)}, nil
}

// met reports whether a version meets the declared one, which may be a requirement such as `>= 1.2` or `~> 1.2`.
func (g *installed) met(installed string) bool {
	for spec := range strings.SplitSeq(g.Version, ",") {
		spec = strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(spec), " ", ""), "~>", "~=")
		if strings.HasPrefix(spec, "=") && !strings.HasPrefix(spec, "==") {
			spec = "=" + spec
		}
		if spec != "" && spec != installed && !pep440.Holds(spec, installed) {
			return false
		}
	}
	return true
}

func (g *installed) Apply(ctx context.Context, h *host.Host, _ module.Diff) (module.Report, error) {
	program := g.program()
	if what, err := client.Awaits(h, program); err != nil || what != "" {
		return module.Report{}, client.OrMissing(err, program, what)
	}
	login, remove, err := g.login(h, program)
	if err != nil {
		return module.Report{}, err
	}
	defer remove()
	program.Env = append(program.Env, login...)
	args := []string{"install", g.Name, "--no-document"}
	if documents := g.documents(); documents != "" {
		args[2] = "--document=" + documents
	}
	for _, f := range []struct{ option, v string }{{"--version", g.Version}, {"--http-proxy", g.Proxy},
		{"--source", g.Source}} {
		if f.v != "" && !redact.HoldsLogin(f.v) {
			args = append(args, f.option, f.v)
		}
	}
	if g.PreReleases {
		args = append(args, "--pre")
	}
	if _, err := program.Trusting(g.Name, g.Source).Do(ctx, h, args...); err != nil {
		return module.Report{}, diag.Library.Hint(err, "check the name, the version and the source of the gem")
	}
	return module.Report{Changes: value.NewMap(g.Name, "Installed"), Comment: "installed " + g.Name}, nil
}

// login writes URLs with credentials to a settings file for gem, since every user can read its arguments, and
// returns the environment that names the file. The caller must call remove, which deletes the file.
func (g *installed) login(h *host.Host, program program.Program) (env []string, remove func(), err error) {
	settings := ""
	if redact.HoldsLogin(g.Source) {
		settings += ":sources:\n- " + quoted(g.Source) + "\n"
	}
	if redact.HoldsLogin(g.Proxy) {
		settings += "http_proxy: " + quoted(g.Proxy) + "\n"
	}
	if settings == "" {
		return nil, func() {}, nil
	}
	user, err := program.Runner(h)
	if err != nil {
		return nil, nil, err
	}
	file, done, err := h.TempFor(user, "gemrc", []byte("---\n"+settings), 0o600)
	return []string{"GEMRC=" + file}, func() { _ = done() }, err // only the user can read a file that remains
}

// quoted returns a text as a YAML string.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (g *installed) documents() string {
	var kinds []string
	if g.RDoc {
		kinds = append(kinds, "rdoc")
	}
	if g.RI {
		kinds = append(kinds, "ri")
	}
	return strings.Join(kinds, ",")
}
