package custom_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/grains/custom"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

func write(t testing.TB, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// script writes a shell program.
func script(t testing.TB, dir, name, body string) string {
	return write(t, dir, name, "#!/bin/sh\n"+body+"\n", 0o755)
}

// warning checks that there is exactly one warning, with these words, and returns its hint.
func warning(t *testing.T, r custom.Result, words string) string {
	t.Helper()
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Error(), words) {
		t.Fatalf("the warnings are %v, want one with %q", r.Warnings, words)
	}
	return diag.HintOf(r.Warnings[0])
}

func TestProgramsAndFilesAreMergedByName(t *testing.T) {
	base, host := t.TempDir(), t.TempDir()
	script(t, base, "20-second", `echo 'role: second'; echo 'rack: {row: 4}'`)
	script(t, base, "10-first", `sleep 0.1; echo '{"role": "first", "site": "fra", "up": true}'`)
	write(t, base, "30-file.yaml", "site: ber\n", 0o644)
	write(t, base, "README", "role: readme\n", 0o644)
	write(t, base, ".hidden.yaml", "role: hidden\n", 0o644)
	script(t, base, "20-second~", "echo 'role: backup'")
	script(t, host, "00-own", "echo 'owner: ops'")
	write(t, host, "own.json", `{"site": "muc"}`, 0o600)
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{base, host, filepath.Join(host, "absent")}})
	if len(r.Warnings) != 0 {
		t.Fatal(r.Warnings)
	}
	want := "{'role': 'second', 'site': 'muc', 'up': True, 'rack': {'row': 4}, 'owner': 'ops'}"
	if got := value.Repr(r.Grains); got != want {
		t.Errorf("grains are\n%s, want\n%s", got, want)
	}
}

func TestProgramsSeeACleanEnvironment(t *testing.T) {
	t.Setenv("SECRET", "s3cret")
	dir := t.TempDir()
	script(t, dir, "env",
		`env | grep -v -e '^_=' -e '^PWD=' -e '^SHLVL=' -e '^OLDPWD=' -e '^CORPUS_PROCESS_TREE=' | sort | sed 's/=\(.*\)/: `+
			`"\1"/'; echo "dir: $(pwd)"`)
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}, Root: "/srv/tree",
		Identity: grains.Identity{Service: "myapp", Instance: "testing", Region: "useast1", Node: "1"}})
	want := "{'CORPUS_INSTANCE': 'testing', 'CORPUS_NODE': '1', 'CORPUS_REGION': 'useast1', 'CORPUS_ROOT': '/srv/tree', " +
		"'CORPUS_SERVICE': 'myapp', 'HOME': '/', 'LANG': 'C.UTF-8', " +
		"'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'dir': '/'}"
	if got := value.Repr(r.Grains); got != want || len(r.Warnings) != 0 {
		t.Errorf("the environment of a program is\n%s, want\n%s\n%v", got, want, r.Warnings)
	}
}

func TestFailedProgramOmitsOnlyItsGrains(t *testing.T) {
	for _, c := range []struct{ name, body, words, hint string }{
		{"fails", "echo 'x: 1'; echo 'no database' >&2; exit 3", "exit status 3: no database", ""},
		{"prints a list", "echo '- a'", "1:1: grains are a mapping of names to values", "role: web"},
		{"prints a word", "echo hello", "grains are a mapping", ""},
		{"prints nonsense", "echo 'a: b: c'", "10-bad:1:5: mapping values are not allowed", ""},
		{"prints two documents", "printf -- '---\\na: 1\\n---\\nb: 2\\n'", "10-bad:3:1: expected a single document", ""},
		{"prints a name twice", "printf 'a: 1\\nb: 2\\na: 3\\n'", "10-bad:3:1: found conflicting ID 'a'", ""},
		{"prints without end", "yes 'aaaaaaaaaaaaaaaa: b'", "prints more than 1024 KiB", ""},
		{"nests without end", `printf '{"a":'; head -c 200000 /dev/zero | tr '\0' '['`, "levels deep", ""},
		{"is killed", "kill -9 $$", "signal: killed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := script(t, dir, "10-bad", c.body)
			script(t, dir, "20-good", "echo 'good: true'")
			r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}})
			hint := warning(t, r, c.words)
			if !strings.Contains(hint, c.hint) || !strings.Contains(r.Warnings[0].Error(), path) {
				t.Errorf("the warning reads %v, hint %q", r.Warnings[0], hint)
			}
			if got := value.Repr(r.Grains); got != "{'good': True}" {
				t.Errorf("grains are %s", got)
			}
		})
	}
}

func TestProgramWithoutOutputSucceeds(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "quiet", "echo note >&2")
	script(t, dir, "comment", "echo '# nothing here'")
	script(t, dir, "null", "echo null")
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}})
	if len(r.Warnings) != 0 || r.Grains.Len() != 0 {
		t.Errorf("grains %s, warnings %v", value.Repr(r.Grains), r.Warnings)
	}
}

func TestFilesThatAreNotRunAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		mode             os.FileMode
		words, hint      string
	}{
		{"a Salt module", "role.py", "def role():\n    return {'role': 'web'}\n", 0o644, "role.py is a grain module for Salt",
			"#!/usr/bin/env python3"},
		{"an executable Salt module", "role.py", "def role():\n    return {}\n", 0o755, "role.py is a grain module for Salt",
			"json.dumps"},
		{"a forgotten bit", "role", "#!/bin/sh\necho 'role: web'\n", 0o644, "is not executable, so it was not run",
			"chmod +x"},
		{"no interpreter", "role", "echo 'role: web'\n", 0o755, "exec format error", "#!/bin/sh"},
		{"a broken file", "role.yaml", "role: [web\n", 0o644, "role.yaml:2:1: expected ',' or ']'", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, c.file, c.text, c.mode)
			r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}})
			if hint := warning(t, r, c.words); !strings.Contains(hint, c.hint) {
				t.Errorf("the hint is %q", hint)
			}
			if r.Grains.Len() != 0 {
				t.Errorf("grains are %s", value.Repr(r.Grains))
			}
		})
	}
}

func TestPythonProgramIsAProgram(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "role.py", "#!/bin/sh\necho 'role: web'\n", 0o755)
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}})
	if len(r.Warnings) != 0 || r.Grains.Value("role") != "web" {
		t.Errorf("grains %s, warnings %v", value.Repr(r.Grains), r.Warnings)
	}
}

// TestDocumentedProgram checks that the program in the documentation works unchanged.
func TestDocumentedProgram(t *testing.T) {
	text, err := os.ReadFile("../../docs/grains.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, found := strings.Cut(string(text), "    #!/bin/sh\n")
	program, _, ended := strings.Cut(program, "\n\n")
	if !found || !ended {
		t.Fatal("docs/grains.md shows no program")
	}
	dir := t.TempDir()
	script(t, dir, "10-raid", strings.ReplaceAll(program, "\n    ", "\n"))
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}})
	if _, is := r.Grains.Value("raid").(bool); !is || len(r.Warnings) != 0 {
		t.Errorf("grains %s, warnings %v", value.Repr(r.Grains), r.Warnings)
	}
}

func TestSkippedProgramsAreReportedAndFilesStillRead(t *testing.T) {
	dir := t.TempDir()
	mark := filepath.Join(t.TempDir(), "ran")
	path := script(t, dir, "10-run", "touch "+mark)
	write(t, dir, "20-file.yml", "role: web\n", 0o644)
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}, Skip: "the root is not this machine's"})
	if len(r.Skipped) != 1 || r.Skipped[0] != path || len(r.Warnings) != 0 || r.Grains.Value("role") != "web" {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program ran")
	}
}

// TestProgramsRunInsideAChroot checks that programs of a system that is not running see its files.
func TestProgramsRunInsideAChroot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it changes roots")
	}
	root, source := t.TempDir(), t.TempDir()
	dir := filepath.Join(root, "etc/corpus/grains.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, root, "inside", "yes", 0o644)
	write(t, source, "main.go", `package main

import "os"

func main() {
	if _, err := os.Stat("/inside"); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString("root: " + os.Getenv("CORPUS_ROOT"))
}
`, 0o644)
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "10-static"), filepath.Join(source, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}, Root: root, Chroot: true})
	if len(r.Warnings) != 0 || r.Grains.Value("root") != "/" {
		t.Errorf("grains %s, warnings %v", value.Repr(r.Grains), r.Warnings)
	}
}

func TestSlowProgramsEndTogether(t *testing.T) {
	dir := t.TempDir()
	started := t.TempDir()
	for i := range 4 { // each waits for the others
		script(t, dir, fmt.Sprint("slow", i), fmt.Sprintf(
			"cd %s; : >%d; while [ ! -e 0 ] || [ ! -e 1 ] || [ ! -e 2 ] || [ ! -e 3 ]; do sleep 0.05; done; echo 'g%d: 1'",
			started, i, i))
	}
	r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}, Timeout: time.Minute})
	if got := value.Repr(r.Grains); got != "{'g0': 1, 'g1': 1, 'g2': 1, 'g3': 1}" {
		t.Errorf("grains are %s", got)
	}
}

// TestAllProcessesEndWithTheTimeLimit checks that the child processes of a program end with it: in the background with
// the output open, with SIGTERM ignored, or both.
func TestAllProcessesEndWithTheTimeLimit(t *testing.T) {
	for _, c := range []struct{ name, body, words string }{
		{"hangs", `echo $$ >PID; exec sleep 60`, "took longer than 300ms"},
		{"is deaf", `trap '' TERM; echo $$ >PID; while :; do sleep 60; done`, "took longer than 300ms"},
		{"forks and hangs", `sleep 60 & echo $! >PID; wait`, "took longer than 300ms"},
		{"forks deaf and hangs", `(trap '' TERM; while :; do sleep 60; done) & echo $! >PID; sleep 60`,
			"took longer than 300ms"},
		{"forks and leaves", `echo 'left: true'; sleep 60 & echo $! >PID`, "kept its output open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, pidFile := t.TempDir(), filepath.Join(t.TempDir(), "pid")
			script(t, dir, "bad", strings.ReplaceAll(c.body, "PID", pidFile))
			t.Parallel() // parallel only here: a program that is being written cannot be run if another process forks meanwhile
			start := time.Now()
			r := custom.Load(t.Context(), custom.Options{Dirs: []string{dir}, Timeout: 300 * time.Millisecond})
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("the collection took %s", took)
			}
			warning(t, r, c.words)
			if !gone(t, pidFile) {
				t.Error("a process still runs")
			}
			if left := strings.Contains(c.body, "left: true"); r.Grains.Has("left") != left {
				t.Errorf("grains are %s", value.Repr(r.Grains))
			}
		})
	}
}

// gone waits for a process to end; a killed one stays visible until its new parent has waited for it.
func gone(t *testing.T, pidFile string) bool {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestInterruptStopsPrograms(t *testing.T) {
	dir := t.TempDir()
	script(t, dir, "slow", "sleep 60")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	r := custom.Load(ctx, custom.Options{Dirs: []string{dir}})
	if took := time.Since(start); took > 30*time.Second || len(r.Warnings) != 1 {
		t.Errorf("the collection took %s, warnings %v", took, r.Warnings)
	}
}

func TestReadFile(t *testing.T) {
	path := write(t, t.TempDir(), "grains", `# who we are
role: web
roles: [web, 'db']
disk: {count: 2, ssd: yes}
mode: 0644
ratio: 1.5
version: "1.10"
day: 2024-01-31
exponent: 1e3
hex: 0x10
huge: 123456789012345678901234567890
none: ~
defaults: &d {a: 1, b: 2}
merged: {<<: *d, b: 3}
text: |
  two
  lines
1: number
`, 0o644)
	m, err := custom.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "{'role': 'web', 'roles': ['web', 'db'], 'disk': {'count': 2, 'ssd': True}, 'mode': 644, 'ratio': 1.5, " +
		"'version': '1.10', 'day': '2024-01-31', 'exponent': '1e3', 'hex': 16, 'huge': 123456789012345678901234567890, " +
		"'none': None, 'defaults': {'a': 1, 'b': 2}, 'merged': {'a': 1, 'b': 3}, 'text': 'two\\nlines\\n', 1: 'number'}"
	if got := value.Repr(m); got != want {
		t.Errorf("grains are\n%s, want\n%s", got, want)
	}
}

func TestReadFileReportsAllMistakes(t *testing.T) {
	path := write(t, t.TempDir(), "grains", "a: 1\nb: !!python/object x\na: 2\n? [x]\n: 1\n", 0o644)
	_, err := custom.ReadFile(path)
	var list diag.List
	if !errors.As(err, &list) || len(list) != 3 {
		t.Fatalf("the error is %v", err)
	}
	for i, want := range []string{
		path + ":2:4: could not determine a constructor for the tag",
		path + ":3:1: found conflicting ID 'a'",
		path + ":4:3: found unacceptable key",
	} {
		if !strings.HasPrefix(list[i].Error(), want) {
			t.Errorf("mistake %d reads %s, want %s", i, list[i], want)
		}
		if list[i].Excerpt == "" {
			t.Errorf("mistake %d shows no excerpt", i)
		}
	}
}

func TestReadFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := custom.ReadFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := custom.ReadFile(dir); err == nil {
		t.Error("a directory was read")
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := custom.ReadFile(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	large := write(t, dir, "large", "a: "+strings.Repeat("x", 1<<20), 0o600)
	if _, err := custom.ReadFile(large); err == nil || !strings.Contains(err.Error(), "more than 1024 KiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestAliasesCannotExplode(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	for _, text := range []string{bomb.String(), "a: &a [*a]\n", "a: &a {b: *a, c: *a}\n"} {
		if m, err := custom.ReadFile(write(t, t.TempDir(), "grains", text, 0o600)); err == nil {
			t.Errorf("%.20q was read and has %d grains", text, m.Len())
		}
	}
}

func FuzzReadFile(f *testing.F) {
	for _, seed := range []string{"a: 1", `{"a": [1, 2.5, null, "\ud83d"]}`, "a: &x [*x]", "<<: {a: 1}", "? {}\n: 1",
		"- a", "{", "a: !!binary x", "\x00", "a: -.inf\nb: +0x_"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "grains")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := custom.ReadFile(path)
		if (m == nil) == (err == nil) {
			t.Errorf("%q gives %v, %v", data, m, err)
		}
		_ = value.Repr(m)
	})
}
