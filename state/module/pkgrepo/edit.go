package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// repoEdit is a change to the file that configures a repository.
type repoEdit struct {
	path    string
	text    string // the new content
	gone    bool   // remove the file
	changes *value.Map
}

// editor returns the edit for a repository; nil if there is nothing to do.
type editor func(h *host.Host) (*repoEdit, error)

// editorFor returns the editor for the package manager of the host; nil for apt.
func editorFor(h *host.Host, rpm, pacman, apk editor) (editor, error) {
	if err := h.Packages.Allowed("setting up package repositories"); err != nil {
		return nil, err
	}
	switch h.Packages.Family() {
	case "apt":
		return nil, nil
	case "dnf", "yum", "zypper":
		return rpm, nil
	case "pacman":
		return pacman, nil
	case "apk":
		return apk, nil
	}
	return nil, diag.Repository.Hint(fmt.Errorf("repositories of %s are not managed", h.Packages.Family()),
		"write their files with file.managed")
}

// checkEdit implements Check for states that use an editor.
func checkEdit(h *host.Host, edit editor, name, nothing, planned string) (module.Diff, error) {
	e, err := edit(h)
	if err != nil {
		return module.Diff{}, err
	}
	if e == nil {
		return module.Diff{Comment: nothing}, nil
	}
	return module.Diff{Changes: e.changes, Comment: fmt.Sprintf(planned, redact.URLs(name), e.path)}, nil
}

// applyEdit implements Apply for states that use an editor.
func applyEdit(ctx context.Context, h *host.Host, edit editor, refresh bool) (report module.Report, err error) {
	e, err := edit(h)
	if err != nil || e == nil {
		return report, err
	}
	if e.gone {
		err = h.Files.Remove(e.path)
	} else {
		err = h.WriteText(e.path, e.text)
	}
	if err != nil {
		return report, fmt.Errorf("writing package repositories: %w", err)
	}
	report.Changes, report.Comment = e.changes, "changed "+e.path
	report.Warnings, err = refreshAfter(ctx, h, refresh)
	return report, err
}

// readRepoFile returns the content of a file, or "" if there is no file.
func readRepoFile(h *host.Host, path string) (string, error) {
	data, err := h.Files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading package repositories: %w", err)
	}
	return string(data), nil
}

// repoFiles returns the paths of the files in a directory whose names end with ending.
func repoFiles(h *host.Host, dir, ending string) ([]string, error) {
	names, err := h.Files.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing package repositories: %w", err)
	}
	var paths []string
	for _, name := range names {
		if strings.HasSuffix(name, ending) {
			paths = append(paths, dir+"/"+name)
		}
	}
	return paths, nil
}

// settingText returns a value in the notation of .repo files: 1 or 0 for a boolean, and lists separated by
// newlines (URLs) or spaces.
func settingText(key string, v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case bool:
		return map[bool]string{true: "1", false: "0"}[v], nil
	case *value.List:
		var words []string
		for _, item := range v.Items {
			text, err := settingText(key, item)
			if err != nil {
				return "", err
			}
			words = append(words, text)
		}
		if slices.Contains([]string{"baseurl", "gpgkey", "Server", "CacheServer", "Include"}, key) {
			return strings.Join(words, "\n"), nil
		}
		return strings.Join(words, " "), nil
	case *value.Map:
		return "", fmt.Errorf("argument %s is a mapping, and a text or a list was expected", key)
	}
	text := strings.TrimSpace(value.Str(v))
	if strings.ContainsAny(text, "\x00\r") {
		return "", fmt.Errorf("argument %s has a sign in it that no setting can have", key)
	}
	return text, nil
}

// shownSetting returns a value for a report, with credentials redacted.
func shownSetting(key string, v any) any {
	text, ok := v.(string)
	switch {
	case !ok:
		return v
	case slices.Contains([]string{"password", "proxy_password", "username", "proxy_username"}, key) && text != "":
		return "***"
	}
	return redact.URLs(text)
}

// equalSetting reports whether two values are equal. Different notations of a boolean are equal.
func equalSetting(a, b string) bool {
	truth := func(s string) string {
		switch strings.ToLower(s) {
		case "1", "true", "yes", "on":
			return "1"
		case "0", "false", "no", "off":
			return "0"
		}
		return strings.Join(strings.Fields(s), " ")
	}
	return truth(a) == truth(b)
}
