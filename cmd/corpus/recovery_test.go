package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
)

var notRun = regexp.MustCompile(`^<!-- not run: (\w+), (lost|stolen|added|threshold|exhausted|restored|forgotten): `)

// documentedRecovery reads the commands in docs/trust.md for each event of each key.
func documentedRecovery(t *testing.T) map[[2]string][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	found := map[[2]string][]string{}
	var marks [][2]string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		code, indented := strings.CutPrefix(line, "    ")
		switch m := notRun.FindStringSubmatch(line); {
		case m != nil:
			marks = append(marks, [2]string{m[1], m[2]})
		case indented:
			for _, mark := range marks {
				found[mark] = append(found[mark], code)
			}
		case line == "" && len(marks) > 0 && found[marks[0]] == nil: // before the block
		default:
			marks = nil
		}
	}
	return found
}

// TestRecoveryAsDocumented runs the commands of docs/trust.md literally, for each key that is lost, stolen, added or
// raised in threshold; hosts accept the store after each of them, except as documented for --at-once.
func TestRecoveryAsDocumented(t *testing.T) {
	artifacttest.Long(t)
	documented := documentedRecovery(t)
	for _, role := range []string{"root", "targets", "snapshot", "timestamp", "myapp", "attestation"} {
		for _, event := range []string{"lost", "stolen", "added", "threshold"} {
			t.Run(role+" "+event, func(t *testing.T) {
				commands := documented[[2]string{role, event}]
				if len(commands) == 0 {
					t.Fatal("docs/trust.md has no commands for this event")
				}
				recoverAsDocumented(t, role, event, commands)
			})
		}
	}
}

// TestVersionsRunUpAsDocumented runs the documented commands for version numbers that an attacker has used up.
func TestVersionsRunUpAsDocumented(t *testing.T) {
	documented := documentedRecovery(t)
	for _, role := range []string{"targets", "myapp"} {
		t.Run(role, func(t *testing.T) {
			commands := documented[[2]string{role, "exhausted"}]
			if len(commands) == 0 {
				t.Fatal("docs/trust.md has no commands for this event")
			}
			recoverAsDocumented(t, role, "exhausted", commands)
		})
	}
}

// runUp signs the highest version of a role with its stolen keys.
func (s *shell) runUp(role string) {
	s.t.Helper()
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	repo := artifacttest.Of(s.t, &publish.Publisher{Store: opened, Keys: publish.Keyring{Dir: s.path("keys")}})
	repo.Forger(role, "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
		f.Roles[role].Signed.Version = math.MaxInt64
	})
}

func recoverAsDocumented(t *testing.T, role, event string, commands []string) {
	s := newShell(t)
	s.expect(0, "keys new --root-keys 3", "made")
	s.expect(0, "keys new attestation", "made")
	s.expect(0, "store init", "set up")
	s.expect(0, "project add attestation --key @keys/attestation.pub", "")
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "publish other 1.0 @one.tar.zst --channel testing", "")
	t.Chdir(s.dir)
	old := s.host()
	s.follows("before", old, "myapp/testing", "other/testing")
	key := "keys/" + role
	if role == "root" {
		key += "-2"
	}
	before := s.ids(key)
	if event == "lost" {
		s.remove(key + ".key")
	}
	if event == "exhausted" {
		s.runUp(role)
		s.follows("with the attacker's files", old, "myapp/testing", "other/testing")
		command := "publish myapp 1.1 @one.tar.zst --channel testing"
		if role == "targets" {
			command = "project add third --key @keys/myapp.pub"
		}
		s.expect(4, command, "corpus keys rotate snapshot")
	}
	stopped := false
	for _, command := range commands {
		words := strings.Fields(strings.ReplaceAll(command, "s3://bucket/prefix", s.env["CORPUS_STORE"]))
		if words[0] == "cp" {
			s.copy(words[1], words[2])
			continue
		}
		s.expect(0, strings.Join(words[1:], " "), "")
		stopped = stopped || slices.Contains(words, "--at-once")
		if strings.Contains(command, " import ") {
			stopped = false
		}
		follow := []string{"other/testing"}
		if !stopped {
			follow = append(follow, "myapp/testing")
		}
		s.follows(command, old, follow...)
	}
	s.expect(0, "root show --trust-root @keys/root.json", role)
	shown := s.out
	if gone := !strings.Contains(shown, before); gone != (event == "lost" || event == "stolen" || event == "exhausted") {
		t.Errorf("after these steps the old key is removed: %v\n%s", gone, shown)
	}
	want := regexp.MustCompile(`(?m)^` + role + `\s.*\s[23] of`)
	if event == "threshold" && !want.MatchString(shown) {
		t.Errorf("the threshold of %s did not rise:\n%s", role, shown)
	}
	s.expect(0, "verify", "verified")
	s.expect(0, "refresh", "renewed")
	if event == "exhausted" {
		s.expect(0, "publish myapp 1.1 @one.tar.zst --channel testing", "myapp/testing is 1.1")
	}
	if role == "myapp" && (event == "lost" || event == "stolen") {
		s.expect(0, "publish myapp 1.1 @one.tar.zst --channel testing", "myapp/testing is 1.1")
	}
	if role != "myapp" {
		s.artifact("two", "2")
		s.expect(0, "publish other 2.0 @two.tar.zst --channel testing", "other/testing is 2.0")
	}
	s.follows("in the end", old, "other/testing", "myapp/testing")
}

// ids returns the ID of a public key.
func (s *shell) ids(name string) string {
	s.t.Helper()
	ids, err := keyIDs([]string{s.path(name + ".pub")})
	if err != nil {
		s.t.Fatal(err)
	}
	return ids[0]
}

// host returns the directory of a host that trusts the store's first root.
func (s *shell) host() string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "trust")
	if err := trust.Pin(dir, []byte(s.read("store/metadata/1.root.json"))); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// follows checks that a host that has read the store, and a new one, accept these channels.
func (s *shell) follows(when, old string, channels ...string) {
	s.t.Helper()
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	for kind, dir := range map[string]string{"an old host": old, "a new host": s.host()} {
		c, err := trust.Open(opened, dir, nil)
		if err == nil {
			err = c.Refresh(context.Background())
		}
		if err != nil {
			s.t.Fatalf("%s: %s resolves %v", when, kind, err)
		}
		for _, channel := range channels {
			ref, err := artifact.ParseRef(channel)
			if err == nil {
				_, err = c.Resolve(context.Background(), ref)
			}
			if err != nil {
				s.t.Errorf("%s: %s resolves %v", when, kind, err)
			}
		}
	}
}
