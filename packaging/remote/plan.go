package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Wanted is what a host is to have.
type Wanted struct {
	Agent       Agent
	Hostname    string
	Others      []string  // hostnames of hosts that must not become this one
	Settings    []Setting // of agent.yaml
	NewConfig   []byte    // agent.yaml of a host that has none; Settings that it lacks are added
	Root        []byte    // root of trust
	Environment []byte    // of /etc/corpus/environment; nil to leave it as it is
}

// Setting is a setting of agent.yaml.
type Setting struct{ Name, Value string }

// Change is a difference between what a host has and what it is to have.
type Change struct {
	What string `json:"what"`
	From string `json:"from,omitempty"`
	To   string `json:"to"`
}

// Plan has the changes that make a host what it is to be.
type Plan struct {
	Changes []Change

	wanted   Wanted
	facts    Facts
	kind     string // of the agent to install: binary, package or none
	hostname string // to set; empty to keep it
	files    map[string][]byte
}

// Kinds of an agent that is installed.
const (
	kindBinary  = "binary"
	kindPackage = "package"
	kindNone    = "none"
)

// NewPlan compares a host with what it is to have. Its error names all reasons why the host cannot have it.
func NewPlan(w Wanted, f Facts) (*Plan, error) {
	p := &Plan{wanted: w, facts: f, kind: kindNone, files: map[string][]byte{"root": w.Root}}
	config, added, err := p.settled()
	if err := errors.Join(f.check(w.Agent), p.checkPackage(), p.checkOther(), err); err != nil {
		return nil, err
	}
	p.agent()
	if f.Hostname() != w.Hostname {
		p.hostname = w.Hostname
		p.add("hostname", f.Hostname(), w.Hostname)
	}
	if w.Environment != nil && sum(w.Environment) != f.values["environment"] {
		p.files["environment"] = w.Environment
		p.add("/etc/corpus/environment", "", "the given file")
	}
	if !bytes.Equal(config, f.config) {
		p.files["agent.yaml"] = config
		p.add("/etc/corpus/agent.yaml", "", strings.Join(added, ", "))
	}
	if f.values["timer"] != "enabled active" {
		p.add("corpus-agent.timer", f.values["timer"], "enabled active")
	}
	return p, nil
}

// Introduced reports whether the host has a root of trust.
func (p *Plan) Introduced() bool { return p.facts.values["introduced"] != "" }

func (p *Plan) add(what, from, to string) { p.Changes = append(p.Changes, Change{what, from, to}) }

// fromPackage reports whether the host's agent is that of a package.
func (p *Plan) fromPackage() bool {
	status := p.facts.values["package"]
	return len(status) > 1 && status[1] == 'i'
}

// checkPackage returns an error for a program in the place of that of a package.
func (p *Plan) checkPackage() error {
	if p.wanted.Agent.Package || !p.fromPackage() || p.facts.values["agent"] == p.wanted.Agent.Program {
		return nil
	}
	return diag.Program.Hint(fmt.Errorf("%s has the package corpus-agent, with another agent than %s", p.facts.destination,
		p.wanted.Agent.File), "give a package as well: --agent FILE.deb")
}

// checkOther returns an error if the host is another one of the same kind, which would lose its work.
func (p *Plan) checkOther() error {
	name, _, _ := strings.Cut(p.facts.Hostname(), ".")
	if !slices.Contains(p.wanted.Others, name) {
		return nil
	}
	return diag.Host.Hint(fmt.Errorf("%s is %s, and not the host that is to become %s", p.facts.destination, name,
		p.wanted.Hostname), "see whether the address is the right one; to give this host another role, give it another "+
		"hostname first")
}

// agent plans the installation of the agent, and of its units if they are not those of a package.
func (p *Plan) agent() {
	a, has := p.wanted.Agent, p.facts.values["agent"]
	if has != a.Program || a.Package && !p.fromPackage() {
		p.kind = kindBinary
		if a.Package {
			p.kind = kindPackage
		}
		p.add("/usr/bin/corpus-agent", short(has), short(a.Program))
	}
	if a.Package || p.fromPackage() {
		return
	}
	for name, content := range packaging.Units() {
		if p.facts.values[name] != sum(content) {
			p.files[name] = content
		}
	}
	if len(p.files) > 1 {
		p.add("units of the agent", "", "those of this release")
	}
}

func short(digest string) string {
	if digest == "" {
		return ""
	}
	return "sha256:" + digest[:12]
}

// settled returns agent.yaml with the settings, and those that the host does not have yet. It adds lines to that of the
// host, and changes none.
func (p *Plan) settled() (text []byte, added []string, err error) {
	if text = p.facts.config; text == nil {
		text = p.wanted.NewConfig
	}
	now := map[string]any{}
	if err := yaml.Unmarshal(text, &now); err != nil {
		return nil, nil, p.unsettled(fmt.Errorf("it is not YAML: %w", err))
	}
	lines := ""
	for _, s := range p.wanted.Settings {
		value, there := now[s.Name]
		if !there {
			lines += fmt.Sprintf("%s: %q\n", s.Name, s.Value)
		} else if value != s.Value {
			err = errors.Join(err, p.unsettled(fmt.Errorf("%s is %v there, and has to be %s", s.Name, value, s.Value)))
		}
		if !there || p.facts.config == nil {
			added = append(added, s.Name+": "+s.Value)
		}
	}
	if err == nil && lines != "" {
		text = fmt.Appendf(nil, "%s\n%s", bytes.TrimRight(text, "\n"), lines)
		err = p.checkSettled(text)
	}
	return text, added, err
}

// checkSettled returns an error if agent.yaml lacks the settings: the lines that were added may be no part of it.
func (p *Plan) checkSettled(text []byte) error {
	has := map[string]any{}
	err := yaml.Unmarshal(text, &has)
	for _, s := range p.wanted.Settings {
		if err != nil || has[s.Name] != s.Value {
			return p.unsettled(fmt.Errorf("no line %s: %s can be added to it", s.Name, s.Value))
		}
	}
	return nil
}

func (p *Plan) unsettled(err error) error {
	return diag.Config.Hint(fmt.Errorf("/etc/corpus/agent.yaml of %s: %w", p.facts.destination, err),
		"see whether this is the right host; then edit the file there: corpus-agent config edit")
}

// Install changes the host. progress, which may be nil, is called with the bytes of the agent that were sent.
func (h Host) Install(ctx context.Context, p *Plan, progress func(done, total int64)) error {
	a := p.wanted.Agent
	if p.kind != kindNone {
		if err := h.upload(ctx, p, progress); err != nil {
			return err
		}
	}
	archive, err := p.archive()
	if err != nil {
		return err
	}
	before := ""
	if p.facts.config != nil {
		before = sum(p.facts.config)
	}
	return h.run(ctx, "installing the agent", "install", archive, h.Err, p.kind, partName(a.Digest), a.Digest, p.hostname,
		before)
}

// upload copies the agent to the host. A copy that was continued and has another digest is made again, once: a power
// failure may have changed its first part.
func (h Host) upload(ctx context.Context, p *Plan, progress func(done, total int64)) error {
	a := p.wanted.Agent
	from := min(p.facts.part, int64(len(a.Data)))
	for {
		sent := &sending{Reader: bytes.NewReader(a.Data[from:]), done: from, total: int64(len(a.Data)), progress: progress}
		err := h.run(ctx, "copying the agent", "upload", sent, h.Err, partName(a.Digest), strconv.FormatInt(from, 10),
			strconv.Itoa(len(a.Data)), a.Digest)
		var ended *Exit
		if from == 0 || !errors.As(err, &ended) || ended.Code != otherBytes {
			return err
		}
		from = 0
	}
}

// sending reports how much of the agent was read.
type sending struct {
	io.Reader
	done, total int64
	progress    func(done, total int64)
}

// Read reads from the agent.
func (s *sending) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if s.done += int64(n); s.progress != nil {
		s.progress(s.done, s.total)
	}
	return n, err
}

// archive returns the small files for the host. The last one shows that the archive is complete.
func (p *Plan) archive() (io.Reader, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	write := func(name string, content []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err := w.Write(content)
		return err
	}
	for name, content := range p.files {
		if err := write(name, content); err != nil {
			return nil, err
		}
	}
	return &b, errors.Join(write("end", nil), w.Close())
}
