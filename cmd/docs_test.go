package cmd_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestDocumentedCommandsWork runs every command in README.md and docs/, in order, like a reader: on the demonstration's
// trees, with a directory in place of a bucket and a host below a scratch root. A block that cannot run here follows a
// comment with the reason:
//
//	<!-- not run: reason -->
func TestDocumentedCommandsWork(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../README.md") {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(file, "../"), "/", "-"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			commands := shownCommands(string(text))
			if len(commands) == 0 {
				return
			}
			r := newReader(t)
			r.otherRoot = filepath.Base(file) == "promotion.md"
			if !strings.Contains(strings.Join(commands, "\n"), "corpus store init") {
				r.prepare()
			}
			for _, c := range commands {
				if out, err := r.run(c); err != nil {
					t.Errorf("%s: %s\n%s", c, err, out)
				}
			}
		})
	}
}

// described matches the description after a command in a line.
var described = regexp.MustCompile(`\s(\s|#).*$`)

// shownCommands returns the commands of the indented blocks that start with one.
func shownCommands(text string) []string {
	var commands []string
	skip, inside, taken := false, false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case strings.HasPrefix(line, "<!-- not run:"):
			skip = true
		case !indented:
			skip = skip && line == ""
			inside = false
		case !inside:
			inside, taken = true, !skip && strings.HasPrefix(code, "corpus")
			skip = false
		}
		if indented && taken && strings.HasPrefix(code, "corpus") {
			commands = append(commands, described.ReplaceAllString(code, ""))
		}
	}
	return commands
}

// reader is a user who runs the documented commands.
type reader struct {
	t     testing.TB
	dir   string
	store string // in place of s3://bucket/prefix; a directory by default
	env   []string
	// otherRoot makes corpus attest count a page's hosts, which are directories here.
	otherRoot bool
}

func newReader(t testing.TB) *reader {
	t.Helper()
	dir := t.TempDir()
	for from, to := range map[string]string{"base": "base", "myapp": "myapp", "site": "site", "hello": "hello",
		"notes": "notes", "changes/1.1": "changes"} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS("../testdata/demo/"+from)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"store/.keep": "", "root/etc/hostname": "myapp-testing-useast1-898900\n",
		"agent.yaml": "keep:\n  releases: 3\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("keys/root.json", filepath.Join(dir, "root.json")); err != nil {
		t.Fatal(err)
	}
	tag(t, filepath.Join(dir, "hello"))
	return &reader{t: t, dir: dir, store: "file://" + dir + "/store", env: append(os.Environ(),
		"PATH="+bin(t)+":"+os.Getenv("PATH"), "HOME="+dir,
		"CORPUS_KEYS=keys", "CORPUS_ROOT="+dir+"/root", "CORPUS_METADATA_ENABLED=false",
		goCache(), "CORPUS_REPORTS_UPLOAD=true", // as in agent.yaml in promotion.md
	)}
}

// tag makes a git tree with the tag v1.0 from a directory.
func tag(t testing.TB, dir string) {
	t.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "First"}, {"tag", "v1.0"}} {
		cmd := exec.Command("git",
			append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// goCache returns the build cache of the go command; a build of the examples uses it again.
func goCache() string {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return ""
	}
	return "GOCACHE=" + strings.TrimSpace(string(out))
}

// prepare makes a store, and a host with the first of two versions, which most pages presuppose.
func (r *reader) prepare() {
	r.t.Helper()
	r.must("corpus keys new", "corpus store init",
		"corpus build ./base -o base.tar.zst", "corpus publish base 1.0 base.tar.zst --channel production",
		"corpus build ./myapp -o myapp-1.0.tar.zst", "corpus publish myapp 1.0 myapp-1.0.tar.zst --channel testing",
		"corpus-agent deploy --trust-root root.json",
		"cp -r myapp next && cp -r changes/. next", "corpus build ./next -o myapp-1.1.tar.zst",
		"corpus publish myapp 1.1 myapp-1.1.tar.zst --channel testing")
}

// must runs commands that must succeed, and returns the output of the last one.
func (r *reader) must(commands ...string) (out string) {
	r.t.Helper()
	for _, c := range commands {
		var err error
		if out, err = r.run(c); err != nil {
			r.t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	return out
}

func (r *reader) run(command string) (string, error) {
	if r.otherRoot {
		command = strings.Replace(command, "corpus attest ", "corpus attest --allow-other-root ", 1)
	}
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(command, "s3://bucket/prefix", "'"+r.store+"'"))
	cmd.Dir, cmd.Env = r.dir, append(r.env, "CORPUS_STORE="+r.store)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestHelloServesItsVersion fetches the response of the program of docs/examples.md, started through the links like its
// unit, after a deploy, an upgrade and a rollback.
func TestHelloServesItsVersion(t *testing.T) {
	artifacttest.Long(t)
	t.Parallel()
	r := newReader(t)
	r.must("corpus keys new", "corpus store init")
	publish := func(version string) {
		t.Helper()
		r.must("echo "+version+" >hello/VERSION", "corpus build ./hello --version "+version+" -o hello-"+version+".tar.zst",
			"corpus publish hello "+version+" hello-"+version+".tar.zst --channel testing")
	}
	answers := func(version string) {
		t.Helper()
		if got := startAndAsk(t, filepath.Join(r.dir, "test-host/srv/projects/hello/current/bin/hello")); got != "hello "+
			version+"\n" {
			t.Errorf("the program answers %q, but %s is deployed", got, version)
		}
	}
	publish("1.0")
	r.must("corpus-agent deploy hello testing --root ./test-host --trust-root root.json")
	answers("1.0")
	publish("1.1")
	r.must("corpus-agent deploy --root ./test-host")
	answers("1.1")
	r.must("corpus-agent rollback --root ./test-host")
	answers("1.0")
}

// startAndAsk starts a program of hello and returns its response.
func startAndAsk(t *testing.T, program string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	cmd := exec.Command(program)
	cmd.Env = []string{"HELLO_ADDRESS=" + address}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for range 300 {
		resp, err := http.Get("http://" + address)
		if err != nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	t.Fatalf("%s does not respond", program)
	return ""
}

// TestReadmeNamesTheLeastGo checks that a reader of README.md installs a Go that can build this repository.
func TestReadmeNamesTheLeastGo(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	needed := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mod)
	if needed == nil || !strings.Contains(string(readme), "Go "+string(needed[1])+" or newer") {
		t.Errorf("go.mod requires Go %s, which README.md does not mention", needed)
	}
}

// TestMakeReportsMissingTools runs make without Go or git, or with a Go that is too old: one line names the problem and
// the program to install.
func TestMakeReportsMissingTools(t *testing.T) {
	old := "#!/bin/sh\n[ \"$1\" = version ] || exit 1\necho go version go1.19.8 linux/amd64\n"
	for name, c := range map[string]struct {
		programs map[string]string
		want     string
	}{
		"no Go":  {map[string]string{"git": "#!/bin/sh\n"}, "make: there is no Go here; install Go "},
		"old Go": {map[string]string{"git": "#!/bin/sh\n", "go": old}, "make: go1.19.8 cannot build this; install Go "},
		"no git": {map[string]string{"go": "#!/bin/sh\n"}, "make: there is no git here; install it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for program, script := range c.programs {
				if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, program := range []string{"sh", "make", "sed", "cut"} {
				path, err := exec.LookPath(program)
				if err != nil {
					t.Skipf("%s is not installed here", program)
				}
				if err := os.Symlink(path, filepath.Join(dir, program)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("make", "--no-print-directory", "-C", "..", "demo")
			cmd.Env = []string{"PATH=" + dir}
			out, err := cmd.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if err == nil || len(lines) != 2 || !strings.HasPrefix(lines[0], c.want) ||
				!strings.HasPrefix(lines[1], "make: ***") {
				t.Errorf("make prints %q, %v", out, err)
			}
		})
	}
}
