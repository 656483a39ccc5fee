//go:build hosts

package hosttest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
	"github.com/corpus-agent/corpus-agent/packaging/hosttest/lab"
)

// typedBlocks matches what a reader of docs/quickstart.md types.
var typedBlocks = regexp.MustCompile("(?sm)^```sh[^\n]*\n(.*?)^```")

// TestQuickStart types docs/quickstart.md into the shell of a workstation, word for word but for the workstation's
// address. MinIO, the hosts, ssh, apt and systemd are real. Afterwards the two hosts serve, the broken release has been
// rolled back, and a third host takes the promoted release.
func TestQuickStart(t *testing.T) {
	n := lab.NewNetwork(t)
	base := lab.Standard("bookworm")
	base.Packages = append(base.Packages, "openssh-server")
	base.Offers = append(base.Offers, "python3-flask")
	home := t.TempDir()
	w := newWorkstation(t, n, home)
	hosts := map[string]*lab.Host{}
	var names []string
	for i, name := range []string{"hello-testing-lab1-1", "notes-testing-lab1-1", "hello-production-lab1-1"} {
		address := fmt.Sprintf("172.31.0.%d", 11+i)
		h := lab.Boot(t, lab.Options{Base: base, Hostname: name, Network: n, Address: address})
		h.Write("/root/.ssh/authorized_keys", w.key)
		h.Sh("chmod 700 /root/.ssh; chmod 600 /root/.ssh/authorized_keys; systemctl start ssh")
		hosts[name] = h
		names = append(names, fmt.Sprintf("Host %s\n  HostName %s\n", name, address))
	}
	w.write(".ssh/config", strings.Join(names, "")+"Host *\n  User root\n  StrictHostKeyChecking accept-new\n"+
		"  UserKnownHostsFile "+home+"/.ssh/known\n  IdentityFile "+home+"/.ssh/id\n")
	run(t, "cp", deb(t), home)

	began := time.Now()
	out := w.shell(quickStart(t))
	t.Logf("the quick start takes %s", time.Since(began).Round(time.Second))
	at := 0
	for _, want := range []string{"hello/testing is 1.0", "notes/testing is 1.0", "converged: hello 1.0",
		"converged: notes 1.0", "hello/testing is 1.1", "rolled back", "tls.pem", "hello/testing is 1.2",
		"hello/production is 1.2"} {
		next := strings.Index(out[at:], want)
		if next < 0 {
			t.Fatalf("no output has %q after\n%s\nin\n%s", want, out[:at], out[at:])
		}
		at += next
	}
	for name, want := range map[string]string{"hello-testing-lab1-1": "hello", "notes-testing-lab1-1": "notes"} {
		if got := hosts[name].Sh("curl -s http://127.0.0.1:8000/"); !strings.Contains(got, want) {
			t.Errorf("%s serves %q", name, got)
		}
	}
	if got := hosts["hello-testing-lab1-1"].Sh("corpus-agent status"); !strings.Contains(got, "hello 1.2") {
		t.Errorf("the corrected release is not deployed:\n%s", got)
	}
	third := strings.ReplaceAll(section(t, "## 3. Two hosts"), "hello-testing-lab1-1 notes-testing-lab1-1",
		"hello-production-lab1-1")
	if out := w.shell(w.settings + third); !strings.Contains(out, "converged: hello 1.2") {
		t.Errorf("the host in production says\n%s", out)
	}
}

// quickStart returns the commands of the document. MinIO is waited for, as a reader does.
func quickStart(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for i, block := range typedBlocks.FindAllStringSubmatch(document(t), -1) {
		all.WriteString(block[1])
		if i == 0 {
			all.WriteString("until curl -sf http://" + lab.Gateway + ":9000/minio/health/ready; do sleep 0.2; done\n")
		}
	}
	return strings.ReplaceAll(all.String(), "192.0.2.10", lab.Gateway)
}

// section returns the commands below a heading of the document.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, after, _ := strings.Cut(document(t), heading)
	return typedBlocks.FindStringSubmatch(after)[1]
}

func document(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "quickstart.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// workstation runs commands of a person on this machine, in the network of the hosts.
type workstation struct {
	t        *testing.T
	network  *lab.Network
	home     string
	key      string // the public half of its ssh key
	settings string // commands that name the store and its credentials
}

func newWorkstation(t *testing.T, n *lab.Network, home string) *workstation {
	t.Helper()
	w := &workstation{t: t, network: n, home: home}
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	id := filepath.Join(home, ".ssh", "id")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", id)
	public, err := os.ReadFile(id + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	w.key = string(public)
	// ssh reads the configuration of the user's entry in /etc/passwd and not of $HOME
	for _, name := range []string{"ssh", "scp"} {
		w.write("bin/"+name, "#!/bin/sh\nexec /usr/bin/"+name+" -F "+home+"/.ssh/config \"$@\"\n")
	}
	program, err := minioserver.Program(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	run(t, "ln", "-s", program, filepath.Join(home, "bin", "minio"))
	corpus, err := filepath.Abs(filepath.Join(repository, "bin", "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, "ln", "-s", corpus, filepath.Join(home, "bin", "corpus"))
	for line := range strings.Lines(section(t, "## 1. A store")) {
		if strings.HasPrefix(line, "export MINIO_ACCESS_KEY") {
			w.settings = strings.ReplaceAll(line, "192.0.2.10", lab.Gateway)
		}
	}
	return w
}

// write writes a file below the home directory: a program below bin, and otherwise a private file.
func (w *workstation) write(name, text string) {
	w.t.Helper()
	file, mode := filepath.Join(w.home, name), os.FileMode(0o600)
	if strings.HasPrefix(name, "bin/") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		w.t.Fatal(err)
	}
}

// shell types commands. MinIO, which they may start, ends with the test.
func (w *workstation) shell(script string) string {
	w.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", w.network.Name(), "sh", "-c", script)
	cmd.Dir = w.home
	cmd.Env = append(os.Environ(), "HOME="+w.home, "PATH="+w.home+"/bin:"+os.Getenv("PATH"),
		"GOCACHE="+strings.TrimSpace(run(w.t, "go", "env", "GOCACHE")), "GOFLAGS=")
	log := filepath.Join(w.home, "typed.log") // a pipe would wait for MinIO to end
	file, err := os.Create(log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	w.t.Cleanup(func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	})
	err = cmd.Run()
	text, readErr := os.ReadFile(log)
	if readErr != nil {
		w.t.Fatal(readErr)
	}
	if err != nil {
		w.t.Fatalf("%v\n%s", err, text)
	}
	return string(text)
}
