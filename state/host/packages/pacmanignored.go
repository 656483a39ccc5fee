package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

const (
	pacmanConf  = "/etc/pacman.conf"
	pacmanDB    = "/var/lib/pacman"
	pacmanCache = "/var/cache/pacman/pkg"
	pacmanLock  = pacmanDB + "/db.lck"
)

// ignoredNames lists names and globs of packages that upgrades skip.
type ignoredNames []string

func (i ignoredNames) holds(name string) bool {
	return slices.ContainsFunc(i, func(glob string) bool {
		ok, err := path.Match(glob, name)
		return ok && err == nil
	})
}

func (p *pacman) ignored() (ignoredNames, error) {
	text, err := p.conf()
	return parseIgnored(text), err
}

func (p *pacman) conf() (string, error) {
	data, err := p.files.ReadFile(pacmanConf)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading which packages are on hold: %w", err)
	}
	return string(data), nil
}

// parseIgnored returns the names in the lines "IgnorePkg = a b" of the section [options].
func parseIgnored(text string) ignoredNames {
	var names ignoredNames
	section := ""
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[") {
			section = line
		}
		if key, v, ok := strings.Cut(line, "="); ok && section == "[options]" && strings.TrimSpace(key) == "IgnorePkg" {
			names = append(names, strings.Fields(v)...)
		}
	}
	return names
}

// hold edits IgnorePkg in pacman.conf, since pacman has no command to put packages on hold.
func (p *pacman) hold(_ context.Context, names []string, held bool) error {
	if len(names) == 0 {
		return nil
	}
	text, err := p.conf()
	if err != nil {
		return err
	}
	edited := editIgnored(text, names, held)
	for _, name := range names {
		if !held && parseIgnored(edited).holds(name) {
			return diag.Packages.Hint(fmt.Errorf("package %s is on hold by a pattern", name), "change IgnorePkg in %s by hand",
				pacmanConf)
		}
	}
	if err := p.files.Write(pacmanConf, host.NewFile{Content: strings.NewReader(edited), UID: -1, GID: -1}); err != nil {
		return fmt.Errorf("putting packages on hold: %w", err)
	}
	return nil
}

// editIgnored returns text with the names removed from all lines IgnorePkg. If held is true, it adds the names to the
// first of these lines, or to a new one at the start of the section [options].
func editIgnored(text string, names []string, held bool) string {
	var lines []string
	if text != "" {
		lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	section, first, options := "", -1, -1
	var kept []string
	for _, line := range lines {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "[") {
			section = trimmed
		}
		key, v, ok := strings.Cut(trimmed, "=")
		if ok && section == "[options]" && strings.TrimSpace(key) == "IgnorePkg" {
			rest := slices.DeleteFunc(strings.Fields(v), func(name string) bool { return slices.Contains(names, name) })
			if held && first < 0 {
				rest = append(rest, names...)
			}
			if len(rest) == 0 {
				continue
			}
			line = "IgnorePkg = " + strings.Join(rest, " ")
			if first < 0 {
				first = len(kept)
			}
		}
		kept = append(kept, line)
		if trimmed == "[options]" && options < 0 {
			options = len(kept)
		}
	}
	if held && first < 0 {
		line := "IgnorePkg = " + strings.Join(names, " ")
		if options < 0 {
			kept = append(kept, "[options]") // at the end: settings before the first section belong to none
			options = len(kept)
		}
		kept = slices.Insert(kept, options, line)
	}
	return strings.Join(kept, "\n") + "\n"
}
