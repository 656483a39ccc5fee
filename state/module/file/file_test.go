package file_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/file"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func TestConformance(t *testing.T) {
	statetest.Run(t, statetest.Suite{
		State:     "file",
		Functions: func(h *statetest.Host) module.Table { return file.Functions(inputs(h.Host)) },
		Prepare:   func(_ *testing.T, h *statetest.Host) { h.Commands = inside(h) },
		Cases:     statetest.Load(t, "../../../testdata/modules/file/*.yaml"),
	})
}

// inside runs commands with the host's /srv and /tmp replaced by their real paths.
func inside(h *statetest.Host) statetest.Commands {
	return func(c host.Command) (host.Output, error) {
		argv := make([]string, len(c.Argv))
		for i, word := range c.Argv {
			argv[i] = regexp.MustCompile(`(^| )/(srv|tmp)/`).ReplaceAllString(word, "$1"+h.Dir+"/$2/")
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		var stdout, stderr strings.Builder
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.Stdin), &stdout, &stderr
		err := cmd.Run()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = nil
		}
		out := host.Output{Stdout: strings.ReplaceAll(stdout.String(), h.Dir, ""),
			Stderr: strings.ReplaceAll(stderr.String(), h.Dir, "")}
		if cmd.ProcessState != nil {
			out.Code = cmd.ProcessState.ExitCode()
		}
		return out, err
	}
}

// inputs returns a pillar, grains and a state tree that is /srv/salt of the host itself.
func inputs(h *host.Host) file.Inputs {
	pillar := value.NewMap("text", "from the pillar\n", "list", value.Strings("a", "b"), "number", 5,
		"deep", value.NewMap("key", "deep value"), "secret", "s3cret-value", "binary64", "aGVsbG8K",
		"data", value.NewMap("b", 1, "a", value.NewList(1, 2), "c", nil), "empty", "")
	grains := value.NewMap("role", "web", "roles", value.Strings("a", "b"), "lines", "one\ntwo")
	return file.Inputs{
		Sources:   sources{h.Files},
		Templates: templates{},
		Pillar:    func(p, delimiter string) (any, bool) { return value.Lookup(pillar, p, delimiter) },
		Grains:    func(p, delimiter string) (any, bool) { return value.Lookup(grains, p, delimiter) },
		Secret:    func(text string) bool { return strings.Contains(text, "s3cret") },
	}
}

// sources reads the state tree from /srv/salt.
type sources struct{ files host.Files }

func (s sources) place(url string) string {
	if rest, ok := strings.CutPrefix(url, "salt://"); ok {
		rest, _, _ = strings.Cut(rest, "?")
		return path.Join("/srv/salt", rest)
	}
	return strings.TrimPrefix(url, "file://")
}

func (s sources) First(_ context.Context, urls []string, _ string) (int, error) {
	for i, url := range urls {
		if _, err := s.files.Stat(s.place(url)); err == nil {
			return i, nil
		}
	}
	return 0, fs.ErrNotExist
}

func (s sources) CheckTrusted(string, string) error { return nil }

func (s sources) Open(_ context.Context, url, _ string) (file.Source, error) {
	info, err := s.files.Stat(s.place(url))
	if err != nil {
		return file.Source{}, err
	}
	r, err := s.files.Open(s.place(url))
	return file.Source{ReadCloser: r, Mode: info.Mode.Perm()}, err
}

func (sources) ReceivedLink(context.Context, string) error { return nil }

func (s sources) List(_ context.Context, url, _ string) ([]file.Entry, error) {
	return s.list(s.place(url), "")
}

func (s sources) list(dir, prefix string) ([]file.Entry, error) {
	names, err := s.files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var entries []file.Entry
	for _, name := range names {
		e := file.Entry{Path: path.Join(prefix, name)}
		e.Target, _ = s.files.Readlink(path.Join(dir, name))
		if info, err := s.files.Stat(path.Join(dir, name)); err == nil {
			e.Dir = info.IsDir()
		}
		entries = append(entries, e)
		if e.Dir {
			below, err := s.list(path.Join(dir, name), e.Path)
			if err != nil {
				return nil, err
			}
			entries = append(entries, below...)
		}
	}
	return entries, nil
}

// templates replaces {{ name }} and supports nothing else.
type templates struct{}

func (templates) Render(_ context.Context, t file.Template) ([]byte, error) {
	if t.Engine != "jinja" {
		return nil, fmt.Errorf("there is no template engine %s", t.Engine)
	}
	var failed error
	rendered := regexp.MustCompile(`{{ (\w+) }}`).ReplaceAllStringFunc(string(t.Text), func(m string) string {
		name := strings.Trim(m, "{} ")
		if !t.Vars.Has(name) {
			failed = diag.At(diag.Pos{File: t.Source, Line: 1}, "%s is undefined", name)
		}
		return value.Str(t.Vars.Value(name))
	})
	return []byte(rendered), failed
}
