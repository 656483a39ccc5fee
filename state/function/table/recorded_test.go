package table_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	functions "github.com/corpus-agent/corpus-agent/state/function/table"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/render"
	"github.com/corpus-agent/corpus-agent/state/roots"
	"github.com/corpus-agent/corpus-agent/state/top"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// testdata holds answers of Salt 3006.0: one file for each of its modules, and in host.json the host of the answers.
const testdata = "../../../testdata/function"

// recorded is one call. Want and After are Python's repr of the answer and of the arguments
// after the call, if it changed them.
type recorded struct {
	Call   string      `json:"call"`
	Args   *value.List `json:"-"`
	Kwargs *value.Map  `json:"kwargs"`
	Want   string      `json:"want"`
	After  string      `json:"after"`
	Fails  string      `json:"fails"`
}

func (r *recorded) UnmarshalJSON(data []byte) error {
	type plain recorded
	v, err := value.FromJSON(data)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, (*plain)(r)); err != nil {
		return err
	}
	r.Args = value.NewList()
	if l, ok := v.(*value.Map).Value("args").(*value.List); ok {
		r.Args = l
	}
	if r.Kwargs == nil {
		r.Kwargs = value.NewMap()
	}
	return nil
}

// fixture describes the host on which the answers were recorded.
type fixture struct {
	ID     string     `json:"id"`
	Grains *value.Map `json:"grains"`
	Pillar *value.Map `json:"pillar"`
	Opts   *value.Map `json:"opts"`
	Files  []struct {
		Path, Text, Link, Mode string
	} `json:"files"`
}

func readFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{}
	data, err := os.ReadFile(filepath.Join(testdata, "host.json"))
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// root writes the host's files below a directory.
func (f *fixture) root(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for _, file := range f.Files {
		path := filepath.Join(root, file.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if file.Link != "" {
			if err := os.Symlink(file.Link, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		mode := uint64(0o644)
		if file.Mode != "" {
			mode, _ = strconv.ParseUint(file.Mode, 8, 32)
		}
		if err := os.WriteFile(path, []byte(file.Text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, fs.FileMode(mode)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// unrendered passes templates through as they are.
type unrendered struct{}

func (unrendered) Render(_ context.Context, src render.Source, _ *value.Map) (render.Text, error) {
	return render.Text{Text: src.Text, Origin: func(line, col int) diag.Pos {
		return diag.Pos{File: src.File, Line: line, Col: col}
	}}, nil
}

// facts returns the Facts of the recorded host.
func (f *fixture) facts(h *host.Host) function.Facts {
	target := &top.Target{ID: f.ID, Grains: f.Grains, Pillar: f.Pillar}
	return function.Facts{
		ID: f.ID, Grains: f.Grains, Pillar: func() *value.Map { return f.Pillar }, Options: f.Opts, Host: h, Version: "1.2.3",
		States:  roots.New(h.Files, roots.Env{Name: "base", Dirs: []string{"/states"}}),
		Pillars: roots.New(h.Files, roots.Env{Name: "base", Dirs: []string{"/pillars"}}),
		Match: func(q function.Query) (bool, error) {
			t := *target
			if q.ID != "" {
				t.ID = q.ID
			}
			return t.MatchDelimited(q.Kind, q.Expression, q.Delimiter)
		},
		Render: func(ctx context.Context, src render.Source, pipe string, vars *value.Map) (any, error) {
			r := &render.Renderer{Templates: unrendered{}, Default: pipe}
			doc, err := r.Render(ctx, src, vars)
			if err != nil {
				return nil, err
			}
			return doc.Value, nil
		},
	}
}

// table returns the functions of a new copy of the host, since calls may change its data.
func (f *fixture) table(h *host.Host) function.Table {
	fresh := *f
	fresh.Grains, fresh.Pillar = value.Copy(f.Grains).(*value.Map), value.Copy(f.Pillar).(*value.Map)
	fresh.Opts = value.Copy(f.Opts).(*value.Map)
	return functions.New(fresh.facts(h))
}

func TestRecorded(t *testing.T) {
	f := readFixture(t)
	h, err := machine.New(host.Options{Root: f.root(t)})
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(testdata, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		switch name {
		case "host":
		case "cmd": // needs a host that runs commands
			own, err := machine.New(host.Options{})
			if err != nil {
				t.Fatal(err)
			}
			replay(t, file, func() function.Table { return f.table(own) })
		default:
			replay(t, file, func() function.Table { return f.table(h) })
		}
	}
}

func replay(t *testing.T, file string, table func() function.Table) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(cases) == 0 {
		t.Errorf("%s records nothing", file)
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s/%d", c.Call, i), func(t *testing.T) { c.check(t, table()) })
	}
}

func (r *recorded) check(t *testing.T, table function.Table) {
	args := value.Copy(r.Args).(*value.List)
	kwargs := value.Copy(r.Kwargs).(*value.Map)
	given := value.Repr(value.NewList(args, kwargs))
	got, err := table.Call(context.Background(), r.Call, args.Items, kwargs)
	switch {
	case r.Fails != "" && err == nil:
		t.Fatalf("%s = %s, want an error: Salt raises %s", given, value.Repr(got), r.Fails)
	case r.Fails != "":
		return
	case err != nil:
		t.Fatalf("%s: %v (want %s)", given, err, r.Want)
	}
	if text := value.Repr(got); text != r.Want {
		t.Errorf("%s\n got %s\nwant %s", given, text, r.Want)
	}
	after := value.Repr(value.NewList(args, kwargs))
	if want := r.After; want != "" && after != want {
		t.Errorf("%s changed its arguments to\n got %s\nwant %s", given, after, want)
	} else if want == "" && after != given {
		t.Errorf("%s changed its arguments to %s, and Salt does not", given, after)
	}
}

// TestRecordedDataNamesNoMachine checks that the recorded data has no properties of the machine of its recording.
func TestRecordedDataNamesNoMachine(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testdata, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"/opt/", "/work", "/home/runner"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s mentions %s", file, word)
			}
		}
	}
}
