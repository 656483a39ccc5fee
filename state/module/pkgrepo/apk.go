package pkgrepo

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const apkRepositories = "/etc/apk/repositories"

// apkLine parses a line of /etc/apk/repositories: a URL or directory, with an optional tag before it. A number
// sign disables it.
func apkLine(line string) (tag, url string, disabled, ok bool) {
	line = strings.TrimSpace(line)
	if rest, off := strings.CutPrefix(line, "#"); off {
		disabled, line = true, strings.TrimSpace(rest)
	}
	f := strings.Fields(line)
	if len(f) == 2 && strings.HasPrefix(f[0], "@") {
		tag, f = f[0], f[1:]
	}
	if len(f) != 1 || !strings.Contains(f[0], "://") && !strings.HasPrefix(f[0], "/") {
		return "", "", false, false
	}
	return tag, strings.TrimRight(f[0], "/"), disabled, true
}

// editAPK returns the edit that sets up a repository of apk, which is one line.
func (r *managed) editAPK(h *host.Host) (*repoEdit, error) {
	if err := errors.Join(r.contradicts(), r.noKey()); err != nil {
		return nil, err
	}
	for k := range r.More.All() {
		return nil, diag.Repository.Hint(fmt.Errorf("%s is not a setting of a repository of apk", value.Str(k)),
			"a repository is a URL, perhaps with a tag: `- name: '@edge https://...'`")
	}
	tag, url, _, ok := apkLine(r.Name)
	if !ok {
		return nil, notAPK(r.Name)
	}
	file := r.File
	if file == "" {
		file = apkRepositories
	}
	text, err := readRepoFile(h, file)
	if err != nil {
		return nil, err
	}
	line := strings.TrimSpace(tag + " " + url)
	if !r.on() {
		line = "#" + line
	}
	return editLine(file, text, tag, url, line, redact.URLs(r.Name)), nil
}

// editLine returns the edit that replaces the line of a repository or appends it, or nil if there is nothing to do.
func editLine(file, text, tag, url, line, name string) *repoEdit {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	changes := value.NewMap("repo", name)
	at := slices.IndexFunc(lines, func(l string) bool {
		t, u, _, ok := apkLine(l)
		return ok && t == tag && u == url
	})
	switch {
	case at < 0:
		lines = append(lines, line)
	case strings.HasPrefix(strings.TrimSpace(lines[at]), "#") == strings.HasPrefix(line, "#"):
		return nil
	default:
		changes = value.NewMap("line", value.NewMap("new", redact.URLs(line),
			"old", redact.URLs(lines[at])))
		lines[at] = line
	}
	return &repoEdit{path: file, text: strings.Join(lines, "\n") + "\n", changes: changes}
}

func notAPK(name string) error {
	return diag.Repository.Hint(fmt.Errorf("%q is not a repository of apk", redact.URLs(name)),
		"give its URL, such as https://dl-cdn.alpinelinux.org/alpine/v3.20/main")
}

func (r *absent) editAPK(h *host.Host) (*repoEdit, error) {
	tag, url, _, ok := apkLine(r.Name)
	if !ok {
		return nil, notAPK(r.Name)
	}
	text, err := readRepoFile(h, apkRepositories)
	if err != nil {
		return nil, err
	}
	var kept []string
	for line := range strings.Lines(text) {
		if t, u, disabled, ok := apkLine(line); !ok || disabled || t != tag || u != url {
			kept = append(kept, line)
		}
	}
	if left := strings.Join(kept, ""); left != text {
		return &repoEdit{path: apkRepositories, text: left, changes: r.changes()}, nil
	}
	return nil, nil
}
