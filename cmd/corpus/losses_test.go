package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// losses has the metadata files of newUsed's store, by kind.
var losses = map[string]string{
	"newest root": "2.root.json", "older root": "1.root.json",
	"newest targets": "5.targets.json", "older targets": "3.targets.json",
	"newest head": "3.myapp~head.json", "older head": "2.myapp~head.json", "only head": "1.zed~head.json",
	"newest list": "3.myapp.json", "older list": "2.myapp.json", "only list": "1.zed.json",
	"newest page": "pages/myapp/NEWEST", "page of a project that was published once": "pages/zed/NEWEST",
	"newest snapshot": "SNAPSHOT", "older snapshot": "3.snapshot.json", "timestamp": "timestamp.json",
}

// newUsed returns a store of three projects with two roots, whose newest change of each kind would be undone by
// returning to the previous version: a new project, a withdrawal, a channel.
func newUsed(t *testing.T) *shell {
	s := newStore(t)
	for _, name := range []string{"one", "two", "three"} {
		s.artifact(name, name)
	}
	s.expect(0, "publish other 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "root change --renew", "root 2")
	s.expect(0, "publish myapp 1.1 @two.tar.zst --channel testing", "")
	s.expect(0, "yank myapp 1.0 --reason broken", "")
	s.expect(0, "keys new extra", "made")
	s.expect(0, "project add other --key @keys/extra.pub", "")
	s.expect(0, "publish zed 1.0 @one.tar.zst --channel testing", "")
	return s
}

// TestLossOfEachFile removes or damages each metadata file of a store, and runs the commands that the output proposes,
// literally, until they succeed. No version may decrease.
func TestLossOfEachFile(t *testing.T) {
	artifacttest.Long(t)
	for what, file := range losses {
		for _, how := range []string{"lost", "damaged"} {
			if how == "damaged" && strings.HasPrefix(what, "older") && what != "older root" { // no command reads them
				continue
			}
			for _, who := range []string{"who published", "another machine"} {
				t.Run(strings.Join([]string{what, how, who}, ", "), func(t *testing.T) { damageFile(t, file, how, who) })
			}
		}
	}
}

func damageFile(t *testing.T, file, how, who string) {
	s := newUsed(t)
	t.Chdir(s.dir)
	old := s.host()
	s.follows("before", old, "myapp/testing", "other/testing", "zed/testing")
	s.expect(0, "ls", "zed")
	before := dates.ReplaceAllString(s.out, "")
	if who != "who published" {
		if err := os.Rename(s.path("keys/seen"), s.path("seen-elsewhere")); err != nil {
			t.Fatal(err)
		}
	}
	path := s.path("store/metadata/" + s.newest(file))
	err := os.Remove(path)
	if how == "damaged" {
		err = os.WriteFile(path, []byte(`{"signed":{}}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if file == "2.root.json" && how == "damaged" && who != "who published" {
		// Only a publisher that has seen the root has a copy of it: the hint names its directory.
		s.expect(4, "refresh", "the --keys directory that published last")
		if err := errors.Join(os.RemoveAll(s.path("keys/seen")), os.Rename(s.path("seen-elsewhere"),
			s.path("keys/seen"))); err != nil {
			t.Fatal(err)
		}
	}
	s.followHints()
	s.expect(0, "verify", "verified 4")
	s.expect(0, "ls", "zed")
	if after := dates.ReplaceAllString(s.out, ""); after != before {
		t.Errorf("after these steps the store is listed as\n%sbefore as\n%s%s", after, before, s.all.String())
	}
	s.follows("afterwards", old, "myapp/testing", "other/testing", "zed/testing")
	for _, project := range []string{"myapp", "other", "zed"} {
		s.expect(0, "publish "+project+" 3.0 @three.tar.zst --channel testing", "testing is 3.0")
	}
	s.follows("in the end", old, "myapp/testing", "other/testing", "zed/testing")
}

var (
	dates  = regexp.MustCompile(`\d{4}-\d\d-\d\d( \d\d:\d\d)?`)
	quoted = regexp.MustCompile("`(corpus [^`]+)`")
	steps  = regexp.MustCompile(`(?m)^  corpus .*$`)
)

// newest returns the name of the newest version of a file, which is only in the directory listing.
func (s *shell) newest(file string) string {
	dir, name := filepath.Split(file)
	pattern := map[string]string{"NEWEST": "*.json", "SNAPSHOT": "*.snapshot.json"}[name]
	if pattern == "" {
		return file
	}
	files, err := filepath.Glob(s.path("store/metadata/" + dir + pattern))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("no %s: %v", file, err)
	}
	at := func(file string) (n int64) {
		if info, err := os.Stat(file); err == nil {
			n = info.ModTime().UnixNano()
		}
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return int(at(a) - at(b)) })
	return dir + filepath.Base(files[len(files)-1])
}

// followHints runs verify and refresh, and the commands in their output and hints, until both succeed.
func (s *shell) followHints() {
	s.t.Helper()
	for range 6 {
		if s.run("verify") == 0 && s.run("refresh") == 0 && s.run("refresh --rebuild") == 0 {
			return
		}
		s.runPrintedCommands(3)
	}
	s.t.Fatalf("the hints repeat without an end:\n%s", s.all.String())
}

// runPrintedCommands runs the commands that the last command printed, and those that these print.
func (s *shell) runPrintedCommands(depth int) {
	s.t.Helper()
	output := s.out + s.err
	var lines []string
	for _, m := range steps.FindAllString(output, -1) {
		lines = append(lines, strings.Split(strings.TrimSpace(m), "; ")...)
	}
	for _, m := range quoted.FindAllStringSubmatch(output, -1) {
		lines = append(lines, m[1])
	}
	for _, line := range lines {
		line = strings.TrimPrefix(line, "corpus ")
		if line == "export" || line == "sign" || line == "import" || strings.Contains(line, "PROJECT") ||
			strings.Contains(line, "FILE") {
			continue
		}
		code := s.run(line)
		fmt.Fprintf(&s.all, "-> corpus %s: exit code %d\n", line, code)
		if code != 0 && depth > 0 {
			s.runPrintedCommands(depth - 1)
		}
	}
}
