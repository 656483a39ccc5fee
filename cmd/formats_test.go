package cmd_test

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestRecordedFormats continues with key directories, stores and hosts of earlier programs: testdata/formats/record
// wrote each archive in testdata/formats with the programs of the commit in its name.
func TestRecordedFormats(t *testing.T) {
	t.Parallel()
	records, err := filepath.Glob("../testdata/formats/*.tar.zst")
	if err != nil || len(records) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, record := range records {
		t.Run(strings.TrimSuffix(filepath.Base(record), ".tar.zst"), func(t *testing.T) {
			t.Parallel()
			site := newSite(t, bin(t))
			extract(t, record, site.dir)
			continueSite(t, site)
		})
	}
}

// continueSite uses the current programs on a recorded site: myapp 1.1 runs, 1.0 ran before it, 1.2 failed and is
// quarantined, 0.9 was withdrawn, the timestamp's key was replaced, and the host is held.
func continueSite(t *testing.T, s *site) {
	s.says("corpus-agent status", 0, "base 1.0, myapp 1.1", "previous      base 1.0, myapp 1.0", "until Friday",
		"myapp 1.2", "quarantined")
	s.says("corpus-agent history", 0, "rolled back  base 1.0, myapp 1.1", "converged    base 1.0, myapp 1.0")
	s.says("corpus-agent converge", 0, "converged")

	// The signatures may have expired since the recording.
	s.says("corpus refresh --within 80", 0, "renewed")
	s.says("corpus verify", 0, "verified")
	s.says("corpus ls", 0, "myapp/testing", "1.2", "0.9")
	s.says("corpus-agent deploy", 0, "myapp 1.1")
	s.says("corpus-agent verify", 0)
	s.says("corpus-agent unhold", 0)
	s.says("corpus-agent deploy", 0, "quarantined")
	s.current("1.1")

	s.says("corpus-agent rollback --to 1.0", 0)
	s.current("1.0")
	s.says("corpus-agent history", 0, "rolled back  base 1.0, myapp 1.1", "rollback")
	s.publish("myapp", "1.3", "testing")
	s.says("corpus-agent deploy", 0, "myapp 1.3")
	s.current("1.3")
	s.says("corpus-agent rollback --to 1.0", 0)
	s.current("1.0")
	s.says("corpus-agent unquarantine --all", 0)

	for i, role := range []string{"timestamp", "snapshot", "targets", "root", "attestation", "myapp", "base"} {
		s.says("corpus keys rotate "+role, 0)
		version := "2." + string(rune('0'+i))
		s.publish("myapp", version, "testing")
		s.says("corpus-agent deploy", 0, "myapp "+version)
	}
	s.says("corpus yank myapp 0.9 --undo", 0)
	s.says("corpus gc --grace 0s", 0)
	s.says("corpus promote myapp testing production", 0, "myapp/production is 2.6")
	s.says("corpus store upgrade", 0)
	s.publish("base", "1.1", "production")
	s.publish("myapp", "3.0", "testing")
	s.says("corpus-agent deploy", 0, "base 1.1, myapp 3.0")
	s.says("corpus-agent verify", 0)
	s.says("corpus verify", 0, "verified")
	s.says("corpus-agent status", 0, "base 1.1, myapp 3.0")
}

// site is a workstation with keys, a store and a host, and the programs to run on them.
type site struct {
	t   *testing.T
	dir string
	bin string
	env []string
}

func newSite(t *testing.T, bin string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, dir: dir, bin: bin, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CORPUS_STORE=file://" + dir + "/store", "CORPUS_KEYS=" + dir + "/keys",
		"CORPUS_ROOT=" + dir + "/root", "CORPUS_METADATA_ENABLED=false",
	}}
	t.Cleanup(s.writable)
	return s
}

// with returns the same site with other programs.
func (s *site) with(bin string) *site {
	other := *s
	other.bin = bin
	return &other
}

// host returns the same site with another named host.
func (s *site) host(root, name string) *site {
	s.t.Helper()
	other := *s
	other.env = append(append([]string{}, s.env...), "CORPUS_ROOT="+filepath.Join(s.dir, root))
	s.write(root+"/etc/hostname", name+"\n")
	return &other
}

// writable allows the test's directory to be removed: releases are read-only.
func (s *site) writable() {
	_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return nil
	})
}

func (s *site) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// says runs a program, and checks its exit code and its output.
func (s *site) says(line string, code int, want ...string) string {
	s.t.Helper()
	words := strings.Fields(line)
	cmd := exec.Command(filepath.Join(s.bin, words[0]), words[1:]...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		s.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("%s: exit code %d, want %d\n%s", line, got, code, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			s.t.Errorf("%s prints\n%swant %q in it", line, out, text)
		}
	}
	return string(out)
}

// publish builds and publishes a tree that has a file with its version.
func (s *site) publish(project, version, channel string) {
	s.t.Helper()
	tree, states := "trees/"+project+"-"+version, "salt/config/states"
	if project == "base" {
		states = "states"
	} else {
		s.write(tree+"/salt/config/pillar/"+project+".sls", "{}\n") // the recorded base includes this file
	}
	s.write(tree+"/version", version)
	s.write(tree+"/"+states+"/top.sls", "base:\n  '*':\n    - "+project+"\n")
	s.write(tree+"/"+states+"/"+project+".sls", "/etc/"+project+".version:\n  file.managed:\n    - contents: '"+version+
		"'\n")
	s.says("corpus build "+tree+" -o "+tree+".tar.zst", 0)
	s.says("corpus publish "+project+" "+version+" "+tree+".tar.zst --channel "+channel, 0,
		project+"/"+channel+" is "+version)
}

// current checks the current version of the service on the host.
func (s *site) current(version string) {
	s.t.Helper()
	target, err := os.Readlink(filepath.Join(s.dir, "root/srv/service/current"))
	if err != nil || !strings.Contains(target, version) {
		s.t.Errorf("the service's current release is %q, %v, want %s", target, err, version)
	}
}

// extract unpacks a record.
func extract(t *testing.T, record, dir string) {
	t.Helper()
	f, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = extractEntry(r, h, filepath.Join(dir, h.Name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func extractEntry(r io.Reader, h *tar.Header, path string) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, h.FileInfo().Mode().Perm()|0o700)
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, path)
	}
	data, err := io.ReadAll(r)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err == nil {
		err = os.Chmod(path, h.FileInfo().Mode().Perm())
	}
	if err == nil {
		err = os.Chtimes(path, h.ModTime, h.ModTime)
	}
	return err
}
