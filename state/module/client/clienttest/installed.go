// Package clienttest has simulated package managers and real database servers, for tests of states that use clients.
package clienttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Installed keeps the packages of a simulated package manager in a file of the case, with a name and a version
// in each line.
type Installed struct{ Host *statetest.Host }

func (i Installed) Read() map[string]string {
	data, _ := i.Host.Files.ReadFile("/installed") // missing before the first installation
	found := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 2 {
			found[f[0]] = f[1]
		}
	}
	return found
}

func (i Installed) write(all map[string]string) error {
	var lines []string
	for name, version := range all {
		lines = append(lines, name+" "+version+"\n")
	}
	slices.Sort(lines)
	return i.Host.Files.Write("/installed",
		host.NewFile{Content: strings.NewReader(strings.Join(lines, "")), UID: -1, GID: -1})
}

// Change installs (name, separator, version) or removes the packages in words.
func (i Installed) Change(install bool, words []string, separator string) error {
	all := i.Read()
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

// Words returns the arguments that are not options.
func Words(args []string, withValue ...string) []string {
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

// Files maps URLs of the state tree to contents.
type Files map[string]string

// Source implements client.Sources.
func (f Files) Source(_ context.Context, url, _ string) ([]byte, error) {
	if text, ok := f[url]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("%s does not exist", url)
}

// Run runs the cases of a state in testdata/modules.
func Run(t *testing.T, state string, table module.Table, programs func(*testing.T, *statetest.Host)) {
	statetest.Run(t, statetest.Suite{
		State:     state,
		Functions: func(*statetest.Host) module.Table { return table },
		Prepare:   programs,
		Cases:     statetest.Load(t, "../../../testdata/modules/"+state+".yaml"),
	})
}

// WithoutProgram checks that, without the program, a dry run reports unknown changes, a run names the package
// to install, and a removal has nothing to do.
func WithoutProgram(t *testing.T, table module.Table, function, brings string) {
	t.Helper()
	h := statetest.NewHost(t)
	h.Commands = statetest.Commands(func(host.Command) (host.Output, error) {
		return host.Output{}, errors.New("no program runs")
	})
	t.Setenv("PATH", "/nowhere")
	resource, d := hosttest.Look(t, h.Host, table, function, value.NewMap("name", "/x"))
	if !d.Unknown {
		t.Errorf("a check finds %+v", d)
	}
	_, err := resource.Apply(context.Background(), h.Host, d)
	if err == nil || !strings.Contains(diag.HintOf(err), brings) {
		t.Errorf("a run fails with %v (hint: %s), want %s in it", err, diag.HintOf(err), brings)
	}
	if _, ok := table["removed"]; ok {
		if _, d := hosttest.Look(t, h.Host, table, "removed", value.NewMap("name", "x")); !d.Empty() {
			t.Errorf("removed finds %+v", d)
		}
	}
}

// WithoutClient checks that, without the client, a dry run of present reports unknown changes and a run names
// the package to install.
func WithoutClient(t *testing.T, table module.Table, brings string) {
	t.Helper()
	t.Setenv("PATH", "/nowhere")
	h := statetest.NewHost(t)
	h.Commands = statetest.Commands(func(host.Command) (host.Output, error) {
		return host.Output{}, errors.New("no program runs")
	})
	r := table["present"]()
	_, _ = module.Decode(r, module.Call{Arguments: value.NewMap("name", "x", "passwd", "y")})
	d, err := r.Check(context.Background(), h.Host)
	if err != nil || !d.Unknown {
		t.Errorf("a check gives %+v, %v", d, err)
	}
	_, err = r.Apply(context.Background(), h.Host, d)
	if err == nil || !strings.Contains(diag.HintOf(err), brings) {
		t.Errorf("a run gives %v (hint: %s)", err, diag.HintOf(err))
	}
}
