package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/session"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// recorded is a call and its result in Salt 3006.0, without the texts of comments and errors.
type recorded struct {
	Call  string
	Want  any
	Error bool // the result is a list of problems
	Fails bool // the exit code is not zero
}

// TestGolden runs the trees of testdata/salt as Salt ran them and compares data, order, chunks,
// requisites, results, changes and numbers.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob("../../testdata/salt/*")
	if err != nil || len(cases) < 60 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath("curl"); err != nil && strings.HasPrefix(filepath.Base(dir), "74") {
				t.Skip("the case requires packages that this machine may lack")
			}
			if strings.HasPrefix(filepath.Base(dir), "45") { // #!py
				needPython(t)
			}
			newTree(t, dir).check(t)
		})
	}
}

// skipped returns the IDs of states whose recorded result is a bug of Salt, and of those that cannot run on this
// machine. 68 d2 is a directory that Salt reports as created although it failed.
func skipped(name string) []string {
	skip := map[string][]string{"37": {"o3"}, "67": {"l"}, "68": {"s2", "d2"}}[name[:2]]
	if os.Geteuid() != 0 {
		// These states search a PATH with a directory that only root may enter, run as another user, change owners, or keep
		// a backup below /var/cache.
		skip = append(skip, map[string][]string{"66": {"i", "j"}, "67": {"c", "o"}, "68": {"d5"}}[name[:2]]...)
	}
	return skip
}

// failsInDryRun returns the IDs of states that fail in a dry run of this engine, as in the run, since no state creates
// the directory that they require. Salt's dry run predicts changes.
func failsInDryRun(name, call string) []string {
	if !strings.Contains(call, "test=True") {
		return nil
	}
	return map[string][]string{"67": {"e"}}[name[:2]]
}

// goldenTree is the copy of a case in a temporary directory.
type goldenTree struct {
	name   string
	dir    string // the copy
	g      string // the directory in the place of /tmp/g
	calls  []recorded
	option *value.Map
	host   *host.Host
	trees  host.Files
}

func newTree(t *testing.T, from string) *goldenTree {
	t.Helper()
	c := &goldenTree{name: filepath.Base(from), dir: t.TempDir(), g: filepath.Join(t.TempDir(), "g"),
		option: value.NewMap()}
	// The diff of a file that not every user may reach has other lines than Salt's.
	must(t, os.Chmod(filepath.Dir(c.dir), 0o755))
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		must(t, err)
		target := filepath.Join(c.dir, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		must(t, err)
		info, err := d.Info()
		must(t, err)
		return os.WriteFile(target, []byte(c.placed(string(data))), info.Mode())
	}))
	data, err := os.ReadFile(filepath.Join(c.dir, "want.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &c.calls))
	if data, err := os.ReadFile(filepath.Join(c.dir, "minion.json")); err == nil {
		options, err := value.FromJSON(data)
		must(t, err)
		c.option = options.(*value.Map)
	}
	c.place(t)
	return c
}

func (c *goldenTree) placed(text string) string {
	return strings.NewReplacer("/tmp/g", c.g, "@D@", c.dir).Replace(text)
}

// place sets the host: this machine, on which a case changes only its directory, or a host in memory for the case that
// creates accounts.
func (c *goldenTree) place(t *testing.T) {
	t.Helper()
	machine, err := machine.New(host.Options{})
	must(t, err)
	c.trees = machine.Files
	if strings.HasPrefix(c.name, "76") {
		imitated := statetest.NewHost(t)
		imitated.Build(t, statetest.Tree{"/home": statetest.Dir(), "/etc/hosts": statetest.File("127.0.0.1 localhost\n")})
		c.host = imitated.Host
		return
	}
	c.host = machine
	must(t, os.Mkdir(c.g, 0o755))
	if setup := filepath.Join(c.dir, "setup.sh"); exists(setup) {
		out, err := exec.Command("sh", setup).CombinedOutput()
		if err != nil {
			t.Fatalf("setup: %v: %s", err, out)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *goldenTree) session() *session.Session {
	options := c.option.Clone()
	settings := session.Settings{
		Host: c.host, Trees: c.trees, ID: "golden", Options: options, Shell: true, Version: "0",
		Failhard: value.Truth(options.Value("failhard")),
		Grains: value.NewMap("id", "golden", "role", "web", "lab", true, "os", "Debian", "os_family", "Debian", "osrelease",
			"12",
			"osmajorrelease", 12, "oscodename", "bookworm", "kernel", "Linux", "shell", "/bin/sh"),
		States: envs(options.Value("file_roots"), c.dir+"/states"),
		Pillar: envs(options.Value("pillar_roots"), c.dir+"/pillar"),
	}
	for _, name := range []string{"file_roots", "pillar_roots", "failhard"} {
		options.Delete(name)
	}
	return families.New(settings)
}

func envs(option any, fallback string) []roots.Env {
	m, ok := option.(*value.Map)
	if !ok {
		return []roots.Env{{Name: "base", Dirs: []string{fallback}}}
	}
	var all []roots.Env
	for name, dirs := range m.All() {
		env := roots.Env{Name: name.(string)}
		for _, dir := range dirs.(*value.List).Items {
			env.Dirs = append(env.Dirs, dir.(string))
		}
		all = append(all, env)
	}
	return all
}

func (c *goldenTree) check(t *testing.T) {
	t.Helper()
	for _, want := range c.calls {
		words := shellWords(want.Call)
		args, kwargs := session.ParseArguments(words[1:])
		answer, err := c.session().Call(context.Background(), words[0], args, kwargs, nil)
		if failed := err != nil || answer.Failed; failed != want.Fails && !c.brokenPillar(want, err) &&
			len(skipped(c.name)) == 0 {
			t.Errorf("%s: failed is %v, want %v: %v", want.Call, failed, want.Fails, err)
		}
		c.compare(t, want, answer, err)
	}
}

// brokenPillar reports whether a call failed because of a pillar with errors, for which Salt has exit code zero.
func (c *goldenTree) brokenPillar(want recorded, err error) bool {
	var broken *session.PillarError
	return errors.As(err, &broken) && !want.Error && want.Want != nil
}

func (c *goldenTree) compare(t *testing.T, want recorded, answer session.Answer, err error) {
	t.Helper()
	if want.Error {
		if len(problemsOf(err)) == 0 {
			t.Errorf("%s: an error was expected, not %s", want.Call, value.Repr(answer.Value))
		}
		return
	}
	if empty, ok := want.Want.(map[string]any); ok && len(empty) == 0 && answer.Value == nil {
		return // Salt prints the errors and returns nothing
	}
	if answer.Value == nil {
		t.Errorf("%s: %v", want.Call, err)
		return
	}
	text, err := json.Marshal(answer.Value)
	must(t, err)
	var got any
	must(t, json.Unmarshal(text, &got))
	got, wanted := comparable(got), comparable(want.Want)
	for _, id := range append(skipped(c.name), failsInDryRun(c.name, want.Call)...) {
		without(got, id)
		without(wanted, id)
	}
	difference(t, want.Call, got, wanted)
}

func problemsOf(err error) diag.List {
	var list diag.List
	errors.As(err, &list)
	return list
}

// comparable returns a result without texts and without values that differ between runs.
func comparable(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, item := range v {
			switch {
			case slices.Contains([]string{"start_time", "duration", "comment", "pid", "__jid__", "warnings", "name_order",
				"__saltfunc__"}, key):
			case key == "_errors":
				m[key] = true
			default:
				m[key] = comparable(item)
			}
		}
		for key, item := range m { // only the results of states
			if result, ok := item.(map[string]any); ok && strings.Contains(key, "_|-") {
				m[key] = map[string]any{"result": result["result"], "changes": result["changes"],
					"__run_num__": result["__run_num__"]}
			}
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = comparable(item)
		}
		return list
	}
	return v
}

// without leaves out the results of an ID.
func without(answer any, id string) {
	m, _ := answer.(map[string]any)
	for tag := range m {
		if parts := strings.Split(tag, "_|-"); len(parts) > 1 && parts[1] == id {
			delete(m, tag)
		}
	}
}

// difference fails the test for each difference; for mappings, for each different member.
func difference(t *testing.T, call string, got, want any) {
	t.Helper()
	g, gotMap := got.(map[string]any)
	w, wantMap := want.(map[string]any)
	if !gotMap || !wantMap {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", call, jsonOf(got), jsonOf(want))
		}
		return
	}
	for key := range w {
		if !reflect.DeepEqual(g[key], w[key]) {
			t.Errorf("%s: %s is\n%s\nwant\n%s", call, key, jsonOf(g[key]), jsonOf(w[key]))
		}
	}
	for key := range g {
		if _, ok := w[key]; !ok {
			t.Errorf("%s: unexpected %s: %s", call, key, jsonOf(g[key]))
		}
	}
}

func jsonOf(v any) string {
	data, _ := json.Marshal(v) // came from JSON
	return string(data)
}

// shellWords splits a command line as a shell does, with single quotes alone.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words[len(words)-1] += part
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
