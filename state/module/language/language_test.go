package language_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/language"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// files are those of the state tree, by URL.
type files map[string]string

func (f files) Source(_ context.Context, url, _ string) ([]byte, error) {
	if text, ok := f[url]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("%s is not there", url)
}

// installed is a file of the case with a name and a version in each line, which the imitated package
// managers keep.
type installed struct{ h *statetest.Host }

func (i installed) read() map[string]string {
	data, _ := i.h.Files.ReadFile("/installed") // none without the file
	found := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 2 {
			found[f[0]] = f[1]
		}
	}
	return found
}

func (i installed) write(all map[string]string) error {
	var lines []string
	for name, version := range all {
		lines = append(lines, name+" "+version+"\n")
	}
	slices.Sort(lines)
	return i.h.Files.Write("/installed", host.NewFile{Content: strings.NewReader(strings.Join(lines, "")), UID: -1, GID: -1})
}

// change installs (name, separator, version) or removes what the words name.
func (i installed) change(install bool, words []string, separator string) error {
	all := i.read()
	for _, word := range words {
		name, version := word, ""
		if at := strings.LastIndex(word, separator); at > 0 {
			name, version = word[:at], word[at+len(separator):]
		}
		switch {
		case name == "none":
			return errors.New("ERROR: No matching distribution found for none")
		case name == "managed":
			return errors.New("error: externally-managed-environment")
		case install && version == "":
			all[name] = "2.0"
		case install:
			all[name] = version
		default:
			delete(all, name)
		}
	}
	return i.write(all)
}

// words are the arguments that are no options.
func words(args []string, withValue ...string) []string {
	var out []string
	for n := 0; n < len(args); n++ {
		switch {
		case slices.Contains(withValue, args[n]):
			n++
		case !strings.HasPrefix(args[n], "-"):
			out = append(out, args[n])
		}
	}
	return out
}

func (i installed) pip(args []string, c host.Command) (string, error) {
	if len(args) > 1 && args[0] == "-m" {
		args = args[2:]
	}
	switch args[0] {
	case "list":
		all := []map[string]string{}
		for name, version := range i.read() {
			if slices.Contains(args, "--outdated") {
				if version != "2.0" {
					all = append(all, map[string]string{"name": name, "version": version, "latest_version": "2.0"})
				}
				continue
			}
			all = append(all, map[string]string{"name": name, "version": version})
		}
		data, err := json.Marshal(all)
		return "WARNING: something\n" + string(data), err
	case "install":
		var all []string
		for _, word := range words(args[1:], "--requirement", "--trusted-host", "--editable") {
			name, _, _ := strings.Cut(word, ">")
			all = append(all, name)
		}
		for n, arg := range args {
			if arg == "--requirement" {
				text, err := i.h.Files.ReadFile(args[n+1])
				if err != nil {
					return "", err
				}
				for _, line := range strings.Fields(string(text)) {
					name, _, _ := strings.Cut(line, ">")
					all = append(all, name)
				}
			}
		}
		if slices.Contains(c.Env, "PIP_INDEX_URL=https://me:s3cret@example.org/simple") {
			all = append(all, "from-the-index")
		}
		return "", i.change(true, all, "==")
	case "uninstall":
		return "", i.change(false, words(args[1:]), "==")
	}
	return "", fmt.Errorf("pip has no %s", args[0])
}

func (i installed) npm(args []string, _ host.Command) (string, error) {
	switch {
	case args[0] == "list":
		tree := map[string]map[string]map[string]string{"dependencies": {}}
		for name, version := range i.read() {
			tree["dependencies"][name] = map[string]string{"version": version}
		}
		data, err := json.Marshal(tree)
		return string(data), err
	case slices.Contains(args, "--dry-run"):
		return fmt.Sprintf(`{"added": %d}`, 1-min(1, len(i.read()))), nil
	case args[0] == "install" && len(words(args)) == 1:
		return "", i.change(true, []string{"dependency"}, "@")
	case args[0] == "install":
		return "", i.change(true, words(args)[1:], "@")
	}
	return "", i.change(false, words(args)[1:], "@")
}

func (i installed) gem(args []string, _ host.Command) (string, error) {
	switch args[0] {
	case "list":
		var out strings.Builder
		for name, version := range i.read() {
			fmt.Fprintf(&out, "%s (%s, default: 0.1 x86)\n", name, version)
		}
		return out.String(), nil
	case "install":
		name := words(args[1:], "--version", "--source", "--http-proxy")[0]
		for n, arg := range args {
			if arg == "--version" {
				name += "=" + strings.TrimLeft(args[n+1], ">= ")
			}
		}
		return "", i.change(true, []string{name}, "=")
	}
	return "", i.change(false, words(args[1:]), "=")
}

func (i installed) pecl(args []string, c host.Command) (string, error) {
	switch {
	case args[0] == "list":
		out := "INSTALLED PACKAGES, CHANNEL PECL.PHP.NET:\n=====\nPACKAGE VERSION STATE\n"
		for name, version := range i.read() {
			out += name + " " + version + " stable\n"
		}
		return out, nil
	case args[0] == "uninstall":
		return "", i.change(false, args[1:], "-")
	}
	name := args[len(args)-1]
	if name == "asks" && c.Stdin == "" {
		return "", errors.New("it waits for an answer")
	}
	if name == "quiet" {
		return "", nil
	}
	return "", i.change(true, []string{name}, "-")
}

func prepare(t *testing.T, h *statetest.Host) {
	i := installed{h}
	h.Provide(t, map[string]statetest.Program{
		"pip3": i.pip, "npm": i.npm, "gem": i.gem, "pecl": i.pecl, "/venv/bin/python": i.pip,
		"python3": func(args []string, _ host.Command) (string, error) {
			if args[0] == "-c" {
				return "Python 3.11.2\n", nil
			}
			dir := args[len(args)-1]
			h.Build(t, statetest.Tree{dir + "/bin/python": statetest.File("imitated").With("0755", "", "")})
			if _, err := h.Files.Stat("/no-ensurepip"); err == nil {
				return "", errors.New("ensurepip is not available")
			}
			if _, err := h.Files.Stat("/no-pip"); err != nil {
				h.Build(t, statetest.Tree{dir + "/lib/python3.11/site-packages/pip/__init__.py": statetest.File("")})
			}
			return "", nil
		},
		"/new/bin/python": i.pip,
	})
	// What Provide put there for the environment that is yet to be made is not there before.
	must(t, h.Files.RemoveAll("/new"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	tree := files{"salt://req.txt": "a==1.0\nb>1\n"}
	for state, table := range language.Tables(tree) {
		t.Run(state, func(t *testing.T) {
			statetest.Run(t, statetest.Suite{
				State:     state,
				Functions: func(*statetest.Host) module.Table { return table },
				Prepare:   prepare,
				Cases:     statetest.Load(t, "../../../testdata/modules/language/"+state+".yaml"),
			})
		})
	}
}

// TestNothingThere says which package brings the program, and takes removing for done.
func TestNothingThere(t *testing.T) {
	for state, c := range map[string]struct{ function, brings string }{
		"pip": {"installed", "python3-pip"}, "npm": {"installed", "npm"}, "gem": {"installed", "ruby"}, "pecl": {"installed", "php-pear"},
		"virtualenv": {"managed", "python3-venv"},
	} {
		h := statetest.NewHost(t)
		h.Commands = statetest.Commands(func(host.Command) (host.Output, error) { return host.Output{}, errors.New("nothing runs") })
		t.Setenv("PATH", "/nowhere")
		table := language.Tables(files{})[state]
		resource, d := hosttest.Look(t, h.Host, table, c.function, value.NewMap("name", "/x"))
		if !d.Unknown {
			t.Errorf("%s: a check finds %+v", state, d)
		}
		_, err := resource.Apply(context.Background(), h.Host, d)
		if err == nil || !strings.Contains(diag.HintOf(err), c.brings) {
			t.Errorf("%s fails with %v (hint: %s), want %s in it", state, err, diag.HintOf(err), c.brings)
		}
		if removed, ok := table["removed"]; ok {
			r := removed()
			_, _ = module.Decode(r, module.Call{Arguments: value.NewMap("name", "x")})
			if d, err := r.Check(context.Background(), h.Host); err != nil || !d.Empty() {
				t.Errorf("%s.removed finds %+v, %v", state, d, err)
			}
		}
	}
}
