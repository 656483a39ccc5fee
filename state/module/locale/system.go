package locale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// system implements locale.system.
type system struct {
	Name string `sls:"name"`

	known *known
}

// file returns the path of the distribution's file for the default locale, and the key in it.
func file(h *host.Host) (path, key string) {
	if _, err := h.Files.Stat("/etc/debian_version"); err == nil {
		return "/etc/default/locale", "LANG" // in newer releases a link to /etc/locale.conf
	}
	if _, err := h.Files.Stat("/etc/locale.conf"); err != nil {
		for _, old := range [][2]string{{"/etc/sysconfig/i18n", "LANG"}, {"/etc/sysconfig/language", "RC_LANG"}} {
			if _, err := h.Files.Stat(old[0]); err == nil {
				return old[0], old[1]
			}
		}
	}
	return "/etc/locale.conf", "LANG"
}

func (s *system) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if err := valid(s.Name); err != nil {
		return module.Diff{}, err
	}
	text, err := s.with(h)
	if err != nil {
		return module.Diff{}, err
	}
	if text == "" {
		return module.Diff{Comment: "the locale of the system is " + s.Name}, nil
	}
	return module.Diff{Changes: value.NewMap("locale", s.Name), Planned: value.NewMap(),
		Comment: "the locale of the system would become " + s.Name}, nil
}

// with returns the text of the file with the locale set, or "" if it is already set.
func (s *system) with(h *host.Host) (string, error) {
	path, key := file(h)
	data, err := h.Files.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	line := key + "=" + s.Name + "\n"
	lines := strings.SplitAfter(string(data), "\n")
	for i, l := range lines {
		name, v, _ := strings.Cut(strings.TrimSpace(l), "=")
		if name != key {
			continue
		}
		if strings.Trim(v, `"'`) == s.Name {
			return "", nil
		}
		lines[i] = line
		return strings.Join(lines, ""), nil
	}
	return ended(string(data)) + line, nil
}

// ended returns a text whose last line ends.
func ended(text string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}

func (s *system) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	has, err := s.known.has(ctx, h, s.Name)
	if err != nil {
		return module.Report{}, err
	}
	if !has {
		return module.Report{}, diag.Prerequisite.Hint(fmt.Errorf("there is no locale %s on this host", s.Name),
			"make it in a locale.present state that this one requires")
	}
	text, err := s.with(h)
	if err != nil {
		return module.Report{}, err
	}
	path, _ := file(h)
	if err := h.WriteText(path, text); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "the locale of the system is " + s.Name}, nil
}
