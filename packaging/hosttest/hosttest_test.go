//go:build hosts

// Package hosttest_test installs this project's own packages on real systemd hosts and uses them as an administrator
// does. `make hosts` builds the packages.
package hosttest_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// repository is the directory of this project's files, relative to this package.
const repository = "../.."

// run runs a command of this machine that must succeed.
func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// deb returns the package of the agent that was built last.
func deb(t *testing.T) string { return built(t, "corpus-agent") }

// built returns a package that was built last.
func built(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(repository, "dist", name+"_*_linux_"+runtime.GOARCH+".deb"))
	if err != nil || len(found) != 1 {
		t.Fatalf("want one package %s in dist, got %d: make snapshot builds it", name, len(found))
	}
	return found[0]
}

// install installs the package on a host.
func install(t *testing.T, h *lab.Host) {
	t.Helper()
	h.Copy(deb(t), "/root/corpus-agent.deb")
	h.Sh("apt-get install -y /root/corpus-agent.deb")
}

// store is a store to which the test publishes.
type store struct {
	t    *testing.T
	dir  string // directory of its objects, if any
	url  string // URL for publishing
	keys string
	work string
}

// newStore makes a store in a directory.
func newStore(t *testing.T) *store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := storeAt(t, "file://"+dir)
	s.dir = dir
	return s
}

func storeAt(t *testing.T, url string) *store {
	t.Helper()
	work := t.TempDir()
	s := &store{t: t, url: url, keys: filepath.Join(work, "keys"), work: work}
	s.corpus("keys", "new")
	s.corpus("store", "init")
	return s
}

func (s *store) corpus(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(repository, "bin", "corpus"), args...)
	cmd.Env = append(os.Environ(), "CORPUS_STORE="+s.url, "CORPUS_KEYS="+s.keys)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("corpus %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// publish builds overlaid trees and publishes the result.
func (s *store) publish(project, version, channel string, trees ...string) {
	s.t.Helper()
	tree := filepath.Join(s.work, project+"-"+version)
	for _, layer := range trees {
		run(s.t, "cp", "-rT", layer, tree)
	}
	file := tree + ".tar.zst"
	s.corpus("build", tree, "-o", file, "--version", version)
	s.corpus("publish", project, version, file, "--channel", channel)
}

// tree writes files into a new directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const storeURL = "https://example.com"

// serve serves the store over HTTPS to the hosts of a network.
func (s *store) serve(n *lab.Network) *httptest.Server {
	s.t.Helper()
	server := httptest.NewUnstartedServer(http.FileServer(http.Dir(s.dir)))
	_ = server.Listener.Close() // the listener on this machine
	server.Listener = n.Listen(net.JoinHostPort(lab.Gateway, "443"))
	server.StartTLS()
	s.t.Cleanup(server.Close)
	return server
}

// reach configures a host with the URL of the store, its certificate and the root of trust.
func (s *store) reach(h *lab.Host, server *httptest.Server) {
	s.t.Helper()
	h.Write("/etc/hosts", h.Read("/etc/hosts")+lab.Gateway+" example.com\n")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	h.Write("/usr/local/share/ca-certificates/lab.crt", string(certificate))
	h.Sh("update-ca-certificates")
	h.Copy(filepath.Join(s.keys, "root.json"), "/root/root.json")
}

// report has the fields of a run's report that the tests use.
type report struct {
	Command string
	Outcome string
	Exit    int `json:"exit_code"`
	Error   string
	Hint    string
	Notes   []string
	States  struct{ Total, Changed, Failed, Skipped, Pending int }
	Steps   []step
}

type step struct {
	ID       string
	Function string
	Name     string
	Result   string
	Changes  json.RawMessage
	Unknown  bool
	Comment  string
	Warnings []string
}

// agent runs corpus-agent on a host and returns its report, regardless of its exit code.
func agent(t *testing.T, h *lab.Host, args ...string) report {
	t.Helper()
	result := h.Run(append([]string{"corpus-agent", "--json"}, args...)...)
	return decoded(t, result.Out, result.Err)
}

func decoded(t *testing.T, out, errs string) report {
	t.Helper()
	var r report
	if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&r); err != nil {
		t.Fatalf("the output is not a report: %v\n%s\n%s", err, out, errs)
	}
	return r
}

// converged fails the test unless a run succeeded.
func (r report) converged(t *testing.T) report {
	t.Helper()
	if r.Exit != 0 {
		t.Fatalf("exit code %d: %s\nhint: %s\n%s", r.Exit, r.Error, r.Hint, r.failures())
	}
	return r
}

func (r report) failures() string {
	var lines []string
	for _, s := range r.Steps {
		if s.Result == "failed" {
			lines = append(lines, s.Function+" "+s.Name+": "+s.Comment)
		}
	}
	return strings.Join(lines, "\n")
}

// history returns the reports on a host, the newest first.
func history(t *testing.T, h *lab.Host) []report {
	t.Helper()
	var all []report
	if err := json.Unmarshal([]byte(h.Must("corpus-agent", "history", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	return all
}
