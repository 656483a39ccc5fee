// Package network implements network.system, which sets the host name and other host-wide settings.
//
// The name is written to /etc/hostname, replaces the old one in /etc/hosts and is set in the kernel. Unlike
// Salt, the state never restarts the network: that could cut off the host, and neither the name nor the search
// domain requires it.
package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Sources compares texts.
type Sources interface {
	// Diff returns a unified diff of two texts.
	Diff(before, after string) string
}

// Functions returns the functions of network.
func Functions(sources Sources) module.Table {
	return module.Table{"system": func() module.Resource { return &system{sources: sources} }}
}

// system implements network.system.
type system struct {
	Name          string `sls:"name"`
	Enabled       *bool  `sls:"enabled"`        // whether interfaces are configured at boot
	Hostname      string `sls:"hostname"`       // "" keeps the present name
	ApplyHostname *bool  `sls:"apply_hostname"` // also set the name of the running system; the default is true
	Search        string `sls:"search"`         // search domains for short names
	// These have no effect: the network is never restarted, other settings are always kept, and only other
	// distributions have files for the rest.
	RequireReboot  any `sls:"require_reboot"`
	RetainSettings any `sls:"retain_settings"`
	Gateway        any `sls:"gateway"`
	NoZeroconf     any `sls:"nozeroconf"`
	NISDomain      any `sls:"nisdomain"`

	sources Sources
	files   []file
	live    bool
}

// file is a file with its present and new text.
type file struct{ path, was, text string }

func (s *system) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := s.Valid(); err != nil {
		return module.Diff{}, err
	}
	changes, err := s.plan(h)
	if err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Comment: "the settings of the host's network are as declared", Warnings: s.unused()}
	if changes != "" {
		d.Changes, d.Planned = value.NewMap("network_settings", changes), value.NewMap()
		d.Comment = "the settings of the host's network would change:\n" + changes
	}
	return d, nil
}

// name matches a host name of one or more labels (RFC 1123).
var name = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?` +
		`(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)
})

func (s *system) Valid() error {
	if s.Hostname != "" && (!name().MatchString(s.Hostname) || len(s.Hostname) > 64) {
		return diag.Argument.Hint(fmt.Errorf("%q is not a host name", s.Hostname),
			"letters, digits and dashes, 64 at most, and dots between labels")
	}
	if strings.ContainsAny(s.Search, "\r\n") {
		return errors.New("the search domains have a line break")
	}
	return nil
}

// unused returns the names of arguments that have no effect.
func (s *system) unused() []string {
	var names []string
	for _, a := range []struct {
		name  string
		given any
	}{{"gateway", s.Gateway}, {"nozeroconf", s.NoZeroconf}, {"nisdomain", s.NISDomain}} {
		if a.given != nil {
			names = append(names, a.name)
		}
	}
	if names == nil {
		return nil
	}
	return []string{"network.system has no file to write " + strings.Join(names, ", ") +
		" to on this host, and leaves it out"}
}

// settings collects lines such as HOSTNAME=a, the form of Salt's reports.
type settings struct{ strings.Builder }

func (s *settings) add(key, v string) {
	if v != "" {
		fmt.Fprintf(s, "%s=%s\n", key, v)
	}
}

// plan determines the files to change, and returns the difference of the settings.
func (s *system) plan(h *host.Host) (changes string, err error) {
	var was, will settings
	for _, part := range []func(*host.Host, *settings, *settings) error{s.planHostname, s.planSearch, s.planBoot} {
		if err := part(h, &was, &will); err != nil {
			return "", err
		}
	}
	switch {
	case was.String() == will.String():
		return "", nil
	case was.Len() == 0:
		return "Added global network settings.", nil
	}
	return s.sources.Diff(was.String(), will.String()), nil
}

func (s *system) planHostname(h *host.Host, was, will *settings) error {
	text, err := read(h, "/etc/hostname")
	if err != nil {
		return err
	}
	old := firstWord(text)
	was.add("HOSTNAME", old)
	if s.Hostname == "" {
		will.add("HOSTNAME", old)
		return nil
	}
	will.add("HOSTNAME", s.Hostname)
	if (s.ApplyHostname == nil || *s.ApplyHostname) && h.Kernel.Allowed("setting the hostname") == nil {
		now, err := h.Kernel.Hostname()
		if err != nil {
			return err
		}
		if s.live = now != s.Hostname; s.live && now != old {
			was.add("RUNNING", now)
		}
	}
	if s.Hostname == old {
		return nil
	}
	s.files = append(s.files, file{"/etc/hostname", text, s.Hostname + "\n"})
	hosts, err := read(h, "/etc/hosts")
	if err != nil || old == "" {
		return err
	}
	s.files = append(s.files, file{"/etc/hosts", hosts, renamed(hosts, old, s.Hostname)})
	return nil
}

// firstWord returns the first line that is neither empty nor a comment.
func firstWord(text string) string {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			return l
		}
	}
	return ""
}

func read(h *host.Host, path string) (string, error) {
	data, err := h.Files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// renamed returns the text of /etc/hosts with the old name replaced where it is a whole word, except in comments.
func renamed(text, old, with string) string {
	word := regexp.MustCompile(`(\s)` + regexp.QuoteMeta(old) + `(\s|$)`)
	var b strings.Builder
	for l := range strings.SplitAfterSeq(text, "\n") {
		body, comment, commented := strings.Cut(l, "#")
		b.WriteString(word.ReplaceAllString(body, "${1}"+with+"${2}"))
		if commented {
			b.WriteString("#" + comment)
		}
	}
	return b.String()
}

// setting holds the lines of a file, and the index and value of the line with a key.
type setting struct {
	lines []string
	at    int // index of the line, -1 for none
	value string
}

func findSetting(text, key string) (s setting) {
	s.lines, s.at = strings.SplitAfter(text, "\n"), -1
	for i, l := range s.lines {
		if v, ok := strings.CutPrefix(l, key); ok {
			s.at, s.value = i, strings.Join(strings.Fields(v), " ")
		}
	}
	return s
}

// with returns the text of the file with the line replaced, or with the line added at the start if there is none.
func (s setting) with(line string) string {
	if s.at < 0 {
		return line + strings.Join(s.lines, "")
	}
	s.lines[s.at] = line
	return strings.Join(s.lines, "")
}

// planSearch plans the change of the search domains.
func (s *system) planSearch(h *host.Host, was, will *settings) error {
	const path = "/etc/resolv.conf"
	text, err := read(h, path)
	if err != nil {
		return err
	}
	old := findSetting(text, "search ")
	wanted := strings.Join(strings.Fields(s.Search), " ")
	if wanted == "" {
		wanted = old.value
	}
	was.add("SEARCH", old.value)
	will.add("SEARCH", wanted)
	if wanted != old.value {
		s.files = append(s.files, file{path, text, old.with("search " + wanted + "\n")})
	}
	return nil
}

// planBoot plans the change of the setting that configures interfaces at boot, if its file exists. Without the
// setting they are configured.
func (s *system) planBoot(h *host.Host, was, will *settings) error {
	const path, key = "/etc/default/networking", "CONFIGURE_INTERFACES="
	text, err := read(h, path)
	if err != nil || text == "" {
		return err
	}
	old := findSetting(text, key)
	wanted := old.value
	if s.Enabled != nil && *s.Enabled != (old.value != "no") {
		wanted = map[bool]string{true: "yes", false: "no"}[*s.Enabled]
	}
	was.add("NETWORKING", old.value)
	will.add("NETWORKING", wanted)
	if wanted != old.value {
		s.files = append(s.files, file{path, text, old.with(key + wanted + "\n")})
	}
	return nil
}

func (s *system) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if s.live {
		if err := h.Kernel.SetHostname(s.Hostname); err != nil {
			return module.Report{}, err
		}
	}
	for _, f := range s.files {
		if f.text == f.was {
			continue
		}
		if err := h.WriteText(f.path, f.text); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "the settings of the host's network were changed"}, nil
}
