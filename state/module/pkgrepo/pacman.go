package pkgrepo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/value"
)

const pacmanConf = "/etc/pacman.conf"

// pacmanSettings maps the arguments of a repository to the settings in pacman.conf.
func pacmanSettings() map[string]string {
	return map[string]string{
		"server": "Server", "baseurl": "Server", "url": "Server", "cacheserver": "CacheServer",
		"siglevel": "SigLevel", "include": "Include", "mirrorlist": "Include", "usage": "Usage",
	}
}

// editPacman returns the edit that sets up a repository of pacman: a section in pacman.conf.
func (r *managed) editPacman(h *host.Host) (*repoEdit, error) {
	if err := errors.Join(repoName(r.Name), r.contradicts(), r.noKey()); err != nil {
		return nil, err
	}
	if !r.on() {
		return nil, diag.Repository.Hint(errors.New("pacman knows no repository that is disabled"),
			"remove it with pkgrepo.absent")
	}
	want, err := r.pacmanSettings()
	if err != nil {
		return nil, err
	}
	text, err := readRepoFile(h, pacmanConf)
	if err != nil {
		return nil, err
	}
	f := parseSections(text, true)
	changes := value.NewMap()
	if _, _, there := f.find(r.Name); !there {
		if !want.Has("Server") && !want.Has("Include") {
			return nil, diag.Repository.Hint(fmt.Errorf("repository %s does not exist yet, and nothing says where it is",
				r.Name), "write `- server: URL`")
		}
		f.add(r.Name)
		changes.Set("repo", r.Name)
	}
	is := f.values(r.Name)
	for k, v := range want.All() {
		key, text := value.Str(k), value.Str(v)
		if old := is.Value(key); old == nil || strings.TrimSpace(value.Str(old)) != text {
			if !changes.Has("repo") {
				changes.Set(key, value.NewMap("new", shownSetting(key, text), "old", shownSetting(key, old)))
			}
			f.set(r.Name, key, text, " = ")
		}
	}
	if changes.Len() == 0 {
		return nil, nil
	}
	return &repoEdit{path: pacmanConf, text: f.text(), changes: changes}, nil
}

func (r *managed) pacmanSettings() (*value.Map, error) {
	want := value.NewMap()
	for k, v := range r.More.All() {
		key, ok := pacmanSettings()[strings.ToLower(value.Str(k))]
		if !ok {
			return nil, diag.Repository.Hint(fmt.Errorf("%s is not a setting of a repository of pacman", value.Str(k)),
				"there are server, cacheserver, siglevel, include and usage")
		}
		text, err := settingText(key, v)
		if err != nil {
			return nil, err
		}
		want.Set(key, text)
	}
	return want, nil
}

func (r *absent) editPacman(h *host.Host) (*repoEdit, error) {
	if err := repoName(r.Name); err != nil {
		return nil, err
	}
	text, err := readRepoFile(h, pacmanConf)
	f := parseSections(text, true)
	if _, _, there := f.find(r.Name); err != nil || !there {
		return nil, err
	}
	f.remove(r.Name)
	return &repoEdit{path: pacmanConf, text: f.text(), changes: r.changes()}, nil
}
