package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/outage"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// rpmRepoDir returns the directory of the .repo files of dnf and yum, or zypper.
func rpmRepoDir(h *host.Host) string {
	if h.Packages.Family() == "zypper" {
		return "/etc/zypp/repos.d"
	}
	return "/etc/yum.repos.d"
}

// findRPM returns the file that contains a repository. For a new one, f is nil.
func findRPM(h *host.Host, dir, name string) (file string, f *sectionFile, err error) {
	paths, err := repoFiles(h, dir, ".repo")
	if err != nil {
		return "", nil, err
	}
	for _, path := range paths {
		text, err := readRepoFile(h, path)
		if err != nil {
			return "", nil, err
		}
		f := parseSections(text, false)
		if _, _, ok := f.find(name); ok {
			return path, f, nil
		}
	}
	return dir + "/" + name + ".repo", nil, nil
}

// repoName returns an error if a name is not valid for a section and a file.
func repoName(name string) error {
	if regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:+-]*$`).MatchString(name) && name != "main" && name != "options" {
		return nil
	}
	return diag.Repository.Hint(fmt.Errorf("%q is not a valid name of a repository", name),
		"repositories here have short names such as epel; the URL goes into baseurl")
}

// editRPM returns the edit that sets up a repository of yum, dnf or zypper: a section of a .repo file.
func (r *managed) editRPM(h *host.Host) (*repoEdit, error) {
	if err := errors.Join(repoName(r.Name), r.contradicts(), r.noKey()); err != nil {
		return nil, err
	}
	want, err := r.rpmSettings(h)
	if err != nil {
		return nil, err
	}
	dir := rpmRepoDir(h)
	if base, ok := want.Get("basedir"); ok {
		dir = path.Clean(value.Str(base))
		want.Delete("basedir")
	}
	file, f, err := findRPM(h, dir, r.Name)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return r.newRPM(h, file, want)
	}
	return r.changeRPM(file, f, want)
}

// noKey returns an error for key_url and the other key arguments that only apt supports, and for ppa and copr.
func (r *managed) noKey() error {
	switch {
	case r.KeyURL != "" || r.KeyText != "" || r.KeyServer != "" || len(r.keyIDs()) > 0:
		return diag.Repository.Hint(errors.New("key_url, key_text and keyid are ways of apt to give a key"),
			"write `- gpgkey: URL` and `- gpgcheck: 1`")
	case r.PPA != "":
		return diag.Repository.Hint(errors.New("a ppa is an archive for Ubuntu"), "give the repository with baseurl")
	case r.More.Has("copr"):
		return diag.Repository.Hint(errors.New("copr repositories are not set up by name"),
			"give the repository with baseurl and gpgkey, as its .repo file has them")
	}
	return nil
}

// rpmSettings returns the declared settings. An empty value removes a setting.
func (r *managed) rpmSettings(h *host.Host) (*value.Map, error) {
	want := value.NewMap()
	human, err := settingText("humanname", r.HumanName)
	if err != nil {
		return nil, err
	}
	if human == "" {
		human = r.Name
	}
	want.Set("name", human)
	want.Set("enabled", map[bool]string{true: "1", false: "0"}[r.on()])
	if r.GPGCheck != nil {
		text, err := settingText("gpgcheck", r.GPGCheck)
		if err != nil {
			return nil, err
		}
		want.Set("gpgcheck", text)
	}
	for k, v := range r.More.All() {
		key := value.Str(k)
		text, err := settingText(key, v)
		if err != nil {
			return nil, err
		}
		if key = zypperName(h, key); key == "gpgautoimport" {
			continue // not a setting
		}
		want.Set(key, text)
	}
	if h.Packages.Family() == "zypper" && r.Refresh != nil {
		want.Set("autorefresh", map[bool]string{true: "1", false: "0"}[*r.Refresh])
	}
	return want, nil
}

// zypperName returns the name of a setting in zypper's files.
func zypperName(h *host.Host, key string) string {
	if h.Packages.Family() != "zypper" {
		return key
	}
	switch key {
	case "url":
		return "baseurl"
	case "cache":
		return "keeppackages"
	}
	return key
}

// on reports whether the repository is enabled.
func (r *managed) on() bool {
	switch {
	case r.Disabled != nil:
		return !*r.Disabled
	case r.Enabled != nil:
		return *r.Enabled
	}
	return true
}

func (r *managed) newRPM(h *host.Host, file string, want *value.Map) (*repoEdit, error) {
	given := func(key string) bool { text, ok := want.Value(key).(string); return ok && text != "" }
	if !given("baseurl") && !given("mirrorlist") && !given("metalink") {
		return nil, diag.Repository.Hint(fmt.Errorf("repository %s does not exist yet, and nothing says where it is",
			r.Name), "write `- baseurl: URL`, or mirrorlist or metalink")
	}
	text, err := readRepoFile(h, file)
	if err != nil {
		return nil, err
	}
	f := parseSections(text, false)
	f.add(r.Name)
	r.fill(f, want)
	return &repoEdit{path: file, text: f.text(), changes: value.NewMap("repo", r.Name)}, nil
}

func (r *managed) fill(f *sectionFile, want *value.Map) {
	for k, v := range want.All() {
		key, text := value.Str(k), value.Str(v)
		if text == "" {
			f.drop(r.Name, key)
		} else {
			f.set(r.Name, key, text, "=")
		}
	}
	if list := words(r.Comments); len(list) > 0 {
		f.setComments(r.Name, list)
	}
}

// changeRPM returns the edit of an existing section.
func (r *managed) changeRPM(file string, f *sectionFile, want *value.Map) (*repoEdit, error) {
	is, changes, todo := f.values(r.Name), value.NewMap(), value.NewMap()
	for k, v := range want.All() {
		key, text := value.Str(k), value.Str(v)
		old, there := is.Get(key)
		switch {
		case there && text != "" && equalSetting(value.Str(old), text), !there && text == "":
		case key == "enabled" && !there && text == "1": // enabled by default
		case text == "":
			changes.Set(key, value.NewMap("new", nil, "old", shownSetting(key, old)))
			todo.Set(key, "")
		default:
			changes.Set(key, value.NewMap("new", shownSetting(key, text), "old", shownSetting(key, old)))
			todo.Set(key, text)
		}
	}
	if list := words(r.Comments); len(list) > 0 && strings.Join(list, "\n") != strings.Join(f.comments(r.Name), "\n") {
		changes.Set("comments", value.NewMap("new", value.Strings(list...), "old", value.Strings(f.comments(r.Name)...)))
	}
	if changes.Len() == 0 {
		return nil, nil
	}
	r.fill(f, todo)
	return &repoEdit{path: file, text: f.text(), changes: changes}, nil
}

// importKeys makes zypper refresh a repository and trust its signing key if gpgautoimport is set.
func (r *managed) importKeys(ctx context.Context, h *host.Host) error {
	if h.Packages.Family() != "zypper" || !value.Truth(r.More.Value("gpgautoimport")) {
		return nil
	}
	said, err := h.Tool(ctx, host.Tool{
		Argv:    []string{"zypper", "--non-interactive", "--gpg-auto-import-keys", "refresh", r.Name},
		Changes: host.Subject{Kind: "package repository", Name: r.Name}, Package: "zypper",
	})
	if err != nil {
		err = outage.Recognize(ctx, said+"\n"+err.Error(), err)
	}
	return host.Failed(diag.Repository, err, "importing the key of repository "+r.Name,
		"check its URL, and that the host reaches it")
}

// editRPM returns the edit that removes a repository, and its file if that contains no other.
func (r *absent) editRPM(h *host.Host) (*repoEdit, error) {
	if err := repoName(r.Name); err != nil {
		return nil, err
	}
	file, f, err := findRPM(h, rpmRepoDir(h), r.Name)
	if err != nil || f == nil {
		return nil, err
	}
	f.remove(r.Name)
	return &repoEdit{path: file, text: f.text(), gone: len(f.names()) == 0, changes: r.changes()}, nil
}
