package session_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/families"
	"github.com/corpus-agent/corpus-agent/state/pillar/external"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// stackFiles are lists and files of PillarStack. The expected pillar was recorded with Salt 3006.0.
var stackFiles = map[string]string{
	"pillar/top.sls": "base: {'*': [p]}\n",
	"pillar/p.sls":   "k: v\n",
	"st/stack.cfg": "core.yml\nroles/{{ __grains__['role'] }}.yml\n{% for r in ['x', 'y'] %}\nroles/{{ r }}*.yml\n" +
		"{% endfor %}\nminions/{{ minion_id }}.yml\nnone/*.yml\n",
	"st/core.yml": "users:\n  tom: {uid: 500, roles: [sysadmin]}\n  root: {uid: 0}\nlist: [a, b]\ngone: 1\nmode: core\n" +
		"first: {a: 1, c: 3}\n",
	"st/roles/web.yml": "users:\n  tom: {uid: 1000, roles: [{__: merge-first}, dev]}\n  mat: {__: overwrite, uid: " +
		"1001}\nlist: [{__: remove}, a]\nseen: {{ stack.users.tom.uid }}\n" +
		"t: {{ __stack__['traverse'](stack, 'users:root:uid', 'none') }}-" +
		"{{ __stack__['traverse'](stack, 'users:nobody', 'none') }}\n",
	"st/roles/x1.yml": "users: {__: remove, root: }\nfirst: {__: merge-first, a: 2, b: 2}\n" +
		"new: {__: overwrite, a: {__: merge-last, b: 1}}\n",
	"st/minions/web-01.yml": "mode: [now, a, list]\npillar_seen: {{ pillar.get('k') }}\nsalt: {{ " +
		"__salt__['grains.get']('role') }}\n",
}

const stackGives = "{'k': 'v', 'users': {'tom': {'uid': 1000, 'roles': ['dev', 'sysadmin']}, 'mat': {'uid': 1001}}, " +
	"'list': ['b'], 'gone': 1, 'mode': ['now', 'a', 'list'], 'first': {'a': 1, 'c': 3, 'b': 2}, 'seen': 500, " +
	"'t': '0-none', 'new': {'a': {'b': 1}}, 'pillar_seen': 'v', 'salt': 'web'}"

// TestStackMatchesSalt compares the result of the source `stack` with that of Salt for the same files.
func TestStackMatchesSalt(t *testing.T) {
	for _, by := range []string{"path", "grain"} {
		set, dir := settings(t, stackFiles)
		set.Grains.Set("role", "web")
		var argument any = filepath.Join(dir, "st/stack.cfg")
		if by == "grain" {
			argument = value.NewMap("grains:role", value.NewMap("web", value.NewList(argument)))
		}
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap("stack", argument)))
		s := families.New(set)
		t.Cleanup(s.Close)
		data, err := s.Pillar(t.Context())
		if got := value.Repr(data); err != nil || got != stackGives {
			t.Errorf("by %s: %v\n got %s\nwant %s", by, err, got, stackGives)
		}
	}
}

// TestAFileTreeIsPillarData reads files of the host and of its nodegroups, a link to a directory, and newlines.
func TestAFileTreeIsPillarData(t *testing.T) {
	set, dir := settings(t, map[string]string{"ft/hosts/web-01/a": "one\n", "ft/hosts/web-01/sub/b": "two\n\n",
		"ft/hosts/web-01/keep.pem": "key\n", "ft/nodegroups/web/a": "group\n", "ft/nodegroups/web/c": "group\n",
		"ft/nodegroups/db/d": "no\n", "ft/hosts/other/e": "no\n"})
	if err := os.Symlink("/etc", filepath.Join(dir, "ft/hosts/web-01/link")); err != nil {
		t.Fatal(err)
	}
	set.Grains.Set("role", "web")
	set.Options = value.NewMap("nodegroups", value.NewMap("web", "G@role:web", "db", "G@role:db"), "ext_pillar",
		value.NewList(value.NewMap("file_tree", value.NewMap("root_dir", filepath.Join(dir, "ft"), "keep_newline",
			value.Strings("*.pem")))))
	s := families.New(set)
	t.Cleanup(s.Close)
	data, err := s.Pillar(t.Context())
	const want = `{'a': 'one', 'c': 'group', 'keep.pem': 'key\n', 'link': {}, 'sub': {'b': 'two\n'}}`
	if got := value.Repr(data); err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestAServerGivesPillarData reads a pillar from a server. An error of the server is an error of the pillar.
func TestAServerGivesPillarData(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/down":
			w.WriteHeader(http.StatusServiceUnavailable)
		case strings.HasSuffix(r.URL.Path, ".yaml"):
			_, _ = w.Write([]byte("path: '" + r.URL.Path + "'\n"))
		default:
			_, _ = w.Write([]byte(`{"path": "` + r.URL.Path + `", "token": "` + r.Header.Get("X-Token") + `"}`))
		}
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		source      string
		argument    *value.Map
		want, fails string
	}{
		{"http_json", value.NewMap("url", "/%s", "header_dict", value.NewMap("X-Token", "t")),
			"{'path': '/web-01', 'token': 't'}", ""},
		{"http_json", value.NewMap("url", "/<role>", "with_grains", true, "namespace", "n"),
			"{'n': {'path': '/web', 'token': ''}}", ""},
		{"http_yaml", value.NewMap("url", "/a.yaml"), "{'path': '/a.yaml'}", ""},
		{"http_json", value.NewMap("url", "/<none>", "with_grains", true), "", "no grain none"},
		{"http_json", value.NewMap("url", "/down"), "", "503"},
		{"http_yaml", value.NewMap("url", "/a.yaml", "ulr", "x"), "", "no argument ulr"},
	} {
		set, _ := settings(t, nil)
		set.Grains.Set("role", "web")
		argument := c.argument.Clone()
		argument.Set("url", server.URL+value.Str(argument.Value("url")))
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap(c.source, argument)))
		s := families.New(set)
		t.Cleanup(s.Close)
		data, err := s.Pillar(t.Context())
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s %v: the error is %v, want %q", c.source, c.argument, err, c.fails)
			}
		case err != nil || value.Repr(data) != c.want:
			t.Errorf("%s: %v, %s, want %s", c.source, err, value.Repr(data), c.want)
		}
	}
}

// TestAFileThatAnotherUserCanChangeIsNoPillarData checks every source that reads files.
func TestAFileThatAnotherUserCanChangeIsNoPillarData(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	for source, argument := range map[string]func(dir string) any{
		"stack":     func(dir string) any { return filepath.Join(dir, "st/stack.cfg") },
		"file_tree": func(dir string) any { return value.NewMap("root_dir", filepath.Join(dir, "ft")) },
	} {
		set, dir := settings(t, map[string]string{"st/stack.cfg": "a.yml\n", "st/a.yml": "a: 1\n",
			"ft/hosts/web-01/a": "1\n"})
		for _, file := range []string{"st/a.yml", "ft/hosts/web-01/a"} {
			if err := os.Chown(filepath.Join(dir, file), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap(source, argument(dir))))
		s := families.New(set)
		t.Cleanup(s.Close)
		if data, err := s.Pillar(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v, %s", source, err, value.Repr(data))
		}
	}
}

// TestUnsupportedSourcesNameAnother checks that the error for an unsupported source, or its hint, names a replacement.
func TestUnsupportedSourcesNameAnother(t *testing.T) {
	for source, want := range map[string]string{"git": "write `- BRANCH URL`", "s3": "reads no buckets",
		"vault": "it has no url", "own": "own.py in _pillar"} {
		set, _ := settings(t, nil)
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap(source, "x")))
		s := families.New(set)
		t.Cleanup(s.Close)
		_, err := s.Pillar(t.Context())
		if err == nil || !strings.Contains(err.Error()+diag.HintOf(err), want) {
			t.Errorf("%s: %v, hint %q", source, err, diag.HintOf(err))
		}
	}
}

// TestACommandThatAnotherUserCanChangeGivesNoPillarData checks commands of root that run or read a file of an
// unprivileged user, or a file in such a user's directory.
func TestACommandThatAnotherUserCanChangeGivesNoPillarData(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this requires root")
	}
	const script = "#!/bin/sh\necho 'a: 1'\n"
	for _, c := range []struct {
		command string // %d stands for the directory
		given   string // path that the unprivileged user owns
		refused bool
	}{
		{"%d/x/s.sh", "x/s.sh", true},
		{"%d/x/s.sh web-01", "x", true},
		{"sh %d/x/s.sh", "x/s.sh", true},
		{"true;(sh '%d/x/s.sh')", "x/s.sh", true},
		{"%d/x/s.sh </dev/null", "", false},
		{"echo 'a: 1' # %d/x/none", "x", false},
		{"%d/x/by.sh", "x/s.sh", true},
		{"%d/x/by.sh", "", false},
	} {
		set, dir := settings(t, map[string]string{"x/s.sh": script})
		if err := os.Chmod(filepath.Join(dir, "x/s.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		by := "#!" + filepath.Join(dir, "x/s.sh") + "\n"
		if err := os.WriteFile(filepath.Join(dir, "x/by.sh"), []byte(by), 0o755); err != nil {
			t.Fatal(err)
		}
		if c.given != "" {
			if err := os.Chown(filepath.Join(dir, c.given), nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap("cmd_yaml",
			strings.ReplaceAll(c.command, "%d", dir))))
		s := families.New(set)
		t.Cleanup(s.Close)
		data, err := s.Pillar(t.Context())
		switch {
		case c.refused && (err == nil || !strings.Contains(err.Error(), "root does not run a command with") ||
			!strings.Contains(diag.HintOf(err), "to root")):
			t.Errorf("%s: %v, hint %q, %s", c.command, err, diag.HintOf(err), value.Repr(data))
		case !c.refused && (err != nil || value.Repr(data) != "{'a': 1}"):
			t.Errorf("%s: %v, %s", c.command, err, value.Repr(data))
		}
	}
}

// TestACommandGetsNoPartOfAnother reads the output of a command with the ID of the host in it.
func TestACommandGetsNoPartOfAnother(t *testing.T) {
	for id, want := range map[string]string{"web-01.example.com": "{'a': 'web-01.example.com'}", "web_1": "{'a': 'web_1'}",
		"x; touch DIR/made": "", "$(touch DIR/made)": "", "../x": "", "x y": ""} {
		set, dir := settings(t, nil)
		set.ID = strings.ReplaceAll(id, "DIR", dir)
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap("cmd_yaml", "echo a: %s")))
		s := families.New(set)
		t.Cleanup(s.Close)
		data, err := s.Pillar(t.Context())
		if refused := err != nil && strings.Contains(diag.HintOf(err), "give the host an ID"); refused != (want == "") ||
			want != "" && value.Repr(data) != want {
			t.Errorf("%s: %v, %s", id, err, value.Repr(data))
		}
		if _, err := os.Stat(filepath.Join(dir, "made")); err == nil {
			t.Errorf("%s: its command ran", id)
		}
	}
}

// TestAliasesOfASourceCannotExplode reads the output of a command with nine levels of YAML aliases, which stand for 9
// to the power of 9 values.
func TestAliasesOfASourceCannotExplode(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := '1'; i < '9'; i++ {
		bomb += "a" + string(i) + ": &a" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*a"+string(i-1)+", ", 9),
			", ") + "]\n"
	}
	set, dir := settings(t, map[string]string{"x/bomb.yaml": bomb})
	set.Options = value.NewMap("ext_pillar",
		value.NewList(value.NewMap("cmd_yaml", "cat "+filepath.Join(dir, "x/bomb.yaml"))))
	s := families.New(set)
	t.Cleanup(s.Close)
	if _, err := s.Pillar(t.Context()); err == nil || !strings.Contains(err.Error(), "stands for more than") {
		t.Errorf("%.200v, hint %q", err, diag.HintOf(err))
	}
}

// TestVaultGivesPillarData reads secrets of a server with a store of each version, a list in the path, and a path
// without a secret.
func TestVaultGivesPillarData(t *testing.T) {
	pages := map[string]string{
		"sys/internal/ui/mounts/kv/web-01": `{"data": {"type": "kv", "path": "kv/", "options": {"version": "2"}}}`,
		"kv/data/web-01":                   `{"data": {"data": {"a": {"x": 1}}, "metadata": {"version": 3}}}`,
		"old/web":                          `{"data": {"a": {"y": 2}}}`,
		"old/db":                           `{"data": {"b": "two"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, found := pages[strings.TrimPrefix(r.URL.Path, "/v1/")]
		switch {
		case r.Header.Get("X-Vault-Token") != "t0ken":
			w.WriteHeader(http.StatusForbidden)
		case !found:
			w.WriteHeader(http.StatusNotFound)
		default:
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(server.Close)
	for _, c := range []struct{ conf, token, want, fails string }{
		{"path=kv/{minion}", "t0ken", "{'roles': ['web', 'db', 'none'], 'a': {'x': 1}}", ""},
		{"path=old/{pillar[roles]}", "t0ken", "{'roles': ['web', 'db', 'none'], 'a': {'y': 2}, 'b': 'two'}", ""},
		{"path=old/{pillar[nothing]}", "t0ken", "{'roles': ['web', 'db', 'none']}", ""},
		{"path=kv/{minion}", "wrong", "", "ext_pillar vault: the server answers HTTP 403"},
		{"path=kv/{minion}", "", "", "it has no token"},
		{"secret", "t0ken", "", "it has no path"},
	} {
		set, dir := settings(t, map[string]string{"pillar/top.sls": "base: {'*': [p]}\n",
			"pillar/p.sls": "roles: [web, db, none]\n", "token": c.token + "\n"})
		set.Options = value.NewMap("ext_pillar", value.NewList(value.NewMap("vault", value.NewMap("conf", c.conf, "url",
			server.URL+"/", "token_file", filepath.Join(dir, "token")))))
		s := families.New(set)
		t.Cleanup(s.Close)
		data, err := s.Pillar(t.Context())
		switch {
		case c.fails != "":
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "wrong") {
				t.Errorf("%s: the error is %v, want %q", c.conf, err, c.fails)
			}
		case err != nil || value.Repr(data) != c.want:
			t.Errorf("%s gives %s, want %s: %v", c.conf, value.Repr(data), c.want, err)
		}
	}
}

// TestCommandThatHangsEndsWithItsContext runs a command that hangs. The error is that of the source, and the
// command does not run on.
func TestCommandThatHangsEndsWithItsContext(t *testing.T) {
	set, dir := settings(t, nil)
	file := filepath.Join(dir, "pid")
	set.Options = value.NewMap("ext_pillar",
		value.NewList(value.NewMap("cmd_yaml", "echo $$ > "+file+"; sleep 100; echo '{}'")))
	s := families.New(set)
	t.Cleanup(s.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Pillar(ctx)
	if _, failed := errors.AsType[*external.Failed](err); !failed || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil &&
		!strings.Contains(string(stat), ") Z ") {
		t.Errorf("the command is still running: %s", stat)
	}
}
