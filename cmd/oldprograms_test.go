//go:build integration

package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

// before is the last commit whose programs read a project's metadata from one file only.
const before = "5623b4b"

// oldPrograms builds the programs of an earlier commit.
func oldPrograms(t *testing.T, commit string) string {
	t.Helper()
	if out, err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("the history of this checkout does not reach back to %s, whose programs this test runs: %s", commit, out)
	}
	tree, bin := filepath.Join(t.TempDir(), "tree"), t.TempDir()
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := exec.Command("sh", "-c", `git -C .. archive "$1" | tar -x -C "$2"`, "sh", commit, tree)
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", bin, "./cmd/corpus", "./cmd/corpus-agent")
	build.Dir = tree
	for _, cmd := range []*exec.Cmd{archive, build} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	return bin
}

// TestOldProgramsUnderANewStore runs the older programs beside the current ones.
func TestOldProgramsUnderANewStore(t *testing.T) {
	old := oldPrograms(t, before)
	t.Run("every command", func(t *testing.T) { oldBesideNew(t, old) })
	t.Run("large project", func(t *testing.T) { oldUnderLarge(t, old) })
}

// oldBesideNew has older agents deploy releases that this corpus publishes, promotes, withdraws and signs with new
// keys, and an older corpus publish in the same store; then the store is upgraded.
func oldBesideNew(t *testing.T, programs string) {
	s := newSite(t, bin(t))
	old := s.with(programs)
	testing, production := old.host("root", "myapp-testing-useast1-1"), old.host("other", "myapp-production-useast1-1")
	s.write("store/.keep", "")
	s.says("corpus keys new", 0)
	s.says("corpus store init", 0)
	s.publish("base", "1", "production")
	s.publish("myapp", "1.0", "testing")
	s.says("corpus promote myapp testing production", 0)
	testing.says("corpus-agent deploy --trust-root keys/root.json", 0, "base 1, myapp 1.0")
	production.says("corpus-agent deploy --trust-root keys/root.json", 0, "base 1, myapp 1.0")

	s.publish("myapp", "1.1", "testing")
	testing.says("corpus-agent deploy", 0, "myapp 1.1")
	production.says("corpus-agent deploy", 0)
	s.says("corpus promote myapp testing production", 0)
	production.says("corpus-agent deploy", 0, "myapp 1.1")
	s.says("corpus yank myapp 1.1 --reason slow", 0)
	testing.says("corpus-agent deploy", 0, "withdrawn")
	s.publish("myapp", "1.2", "testing")
	testing.says("corpus-agent deploy", 0, "myapp 1.2")
	for i, role := range []string{"timestamp", "snapshot", "targets", "root", "base", "myapp"} {
		s.says("corpus keys rotate "+role, 0)
		version := fmt.Sprintf("2.%d", i)
		s.publish("myapp", version, "testing")
		testing.says("corpus-agent deploy", 0, "myapp "+version)
	}

	// An older corpus publishes, and this one continues from its state.
	old.publish("myapp", "3.0", "testing")
	s.host("new", "myapp-testing-useast1-2").says("corpus-agent deploy --trust-root keys/root.json", 0, "myapp 3.0")
	s.publish("myapp", "3.1", "testing")
	testing.says("corpus-agent deploy", 0, "myapp 3.1")
	if list := s.says("corpus ls --json", 0); !strings.Contains(list, `"3.0"`) || !strings.Contains(list, `"1.0"`) {
		t.Errorf("versions are lost: %s", list)
	}

	s.says("corpus store upgrade", 0)
	testing.says("corpus-agent deploy", 0)
	s.publish("myapp", "4.0", "testing")
	testing.says("corpus-agent deploy", 0, "myapp 4.0")
	s.says("corpus promote myapp testing production", 0)
	production.says("corpus-agent deploy", 0, "myapp 4.0")
	s.publish("myapp", "4.1", "testing")
	testing.says("corpus-agent deploy", 0, "myapp 4.1")
	testing.says("corpus-agent verify", 0)
	testing.says("corpus-agent rollback --to 3.1", 0, "myapp 3.1") // no channel has version 3.1, so it is not in the head
	testing.says("corpus-agent verify", 0)
	if list := old.says("corpus ls --json", 0); strings.Contains(list, `"3.0"`) || !strings.Contains(list, `"4.1"`) {
		t.Errorf("an older corpus lists other versions than those of channels: %s", list)
	}
}

// oldUnderLarge publishes a project whose versions need more than the 8 MiB that readers accept in one file.
func oldUnderLarge(t *testing.T, programs string) {
	s := newSite(t, bin(t))
	old := s.with(programs).host("root", "myapp-testing-useast1-1")
	s.write("store/.keep", "")
	opened, err := stores.Open("file://"+s.dir+"/store", stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repo := artifacttest.On(t, opened)
	s.env = append(s.env, "CORPUS_KEYS="+repo.Keys.Dir)
	s.publish("base", "1", "production")
	s.publish("myapp", "1.0", "testing")
	repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
		role := f.Roles["myapp"]
		for i := range 26_000 {
			target := trust.TargetPath("myapp", fmt.Sprintf("0.%d", i), artifact.TarZst)
			for _, name := range []string{target, target + ".blocks", target + ".index"} {
				file := tuf.TargetFile()
				file.Length, file.Hashes = int64(i+1), tuf.Hashes{"sha256": make([]byte, 32)}
				role.Signed.Targets[name] = file
			}
		}
		role.Signed.Version++
	})
	s.publish("myapp", "1.1", "testing")
	old.says("corpus-agent deploy --trust-root "+filepath.Join(repo.Keys.Dir, "root.json"), 0, "base 1, myapp 1.1")
	s.publish("myapp", "1.2", "testing")
	old.says("corpus-agent deploy", 0, "myapp 1.2")
	checkSizes(t, filepath.Join(s.dir, "store/metadata"))
	s.says("corpus store upgrade", 0)
	s.publish("myapp", "1.3", "testing")
	old.says("corpus-agent deploy", 0, "myapp 1.3")
}

// checkSizes checks that the newest file in the older format has the maximum size, and that none in the new format has.
func checkSizes(t *testing.T, dir string) {
	t.Helper()
	list, err := filepath.Glob(dir + "/*.myapp.json")
	if err != nil || len(list) == 0 {
		t.Fatalf("the file in the older format is missing: %v", err)
	}
	newest, version := "", 0
	for _, file := range list {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(file), "%d.", &n); err == nil && n > version {
			newest, version = file, n
		}
	}
	info, err := os.Stat(newest)
	if err != nil || info.Size() > 6<<20+1<<16 || info.Size() < 5<<20 {
		t.Errorf("%s: %v, %v", newest, info.Size(), err)
	}
	head, err := os.Stat(strings.Replace(newest, "myapp.json", "myapp~head.json", 1))
	if err != nil || head.Size() > 100_000 {
		t.Errorf("the head: %v, %v", head, err)
	}
}
