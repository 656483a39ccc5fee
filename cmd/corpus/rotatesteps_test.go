package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
)

// TestRotationsThatSeveralSign rotates keys of roles that two people have to sign, or whose delegating role two people
// have to sign, and runs the commands in the output, literally, until they succeed. bob has the second keys.
func TestRotationsThatSeveralSign(t *testing.T) {
	artifacttest.Long(t)
	for _, test := range []struct {
		role  string
		two   []string // roles that two keys sign
		ofBob []string // those of them whose second key bob has
	}{
		{"root", []string{"root"}, nil}, {"root", []string{"root"}, []string{"root"}},
		{"targets", []string{"targets"}, nil}, {"targets", []string{"targets"}, []string{"targets"}},
		{"targets", []string{"root"}, []string{"root"}}, {"targets", []string{"root", "targets"},
			[]string{"root", "targets"}},
		{"snapshot", []string{"snapshot"}, nil}, {"snapshot", []string{"root"}, []string{"root"}},
		{"snapshot", []string{"root", "snapshot"}, []string{"root"}},
		{"timestamp", []string{"timestamp"}, nil}, {"timestamp", []string{"root"}, []string{"root"}},
		{"timestamp", []string{"root", "timestamp"}, []string{"root"}},
		{"myapp", []string{"myapp"}, nil}, {"myapp", []string{"myapp"}, []string{"myapp"}},
		{"myapp", []string{"targets"}, []string{"targets"}}, {"myapp", []string{"targets", "myapp"},
			[]string{"targets", "myapp"}},
	} {
		t.Run(test.role+" where two sign "+strings.Join(test.two, " and ")+", bob has "+strings.Join(test.ofBob, " and "),
			func(t *testing.T) {
				s := newTwoSign(t, test.two, test.ofBob)
				old := s.host()
				s.follows("before", old, "myapp/testing")
				before := s.ids("keys/" + test.role)
				for range 4 {
					if s.run("keys rotate "+test.role) == 0 {
						break
					}
					s.followSteps(old)
				}
				s.expect(0, "root show", test.role)
				if strings.Contains(s.out, before) {
					t.Fatalf("the old key may still sign:\n%s%s", s.out, s.all.String())
				}
				if !strings.Contains(s.out, s.ids("keys/"+test.role)) {
					t.Errorf("the key in the directory may not sign:\n%s%s", s.out, s.all.String())
				}
				if left, err := os.ReadDir(s.path("keys/next")); err != nil || len(left) > 0 {
					t.Errorf("keys/next has %v (%v)", left, err)
				}
				s.follows("afterwards", old, "myapp/testing")
				s.expect(0, "verify", "verified")
				s.expect(0, "refresh", "renewed")
			})
	}
}

// newTwoSign returns a store with roles that two keys sign. bob has the second key of some of them in his directory.
func newTwoSign(t *testing.T, two, ofBob []string) *shell {
	s := newStore(t)
	t.Chdir(s.dir)
	s.env["CORPUS_KEYS"] = "keys" // as a person would, so that printed paths are relative
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 one.tar.zst --channel testing", "")
	s.expect(0, "keys new --keys bob", "made")
	s.expect(0, "keys new --keys bob myapp", "made")
	for _, role := range two {
		s.copy("bob/"+role+".key", "keys/"+role+"-2.key")
		s.copy("bob/"+role+".pub", "keys/"+role+"-2.pub")
		if role == "myapp" {
			s.expect(0, "project add myapp --key bob/myapp.pub", "")
			s.expect(0, "refresh", "")
			s.expect(0, "project add myapp --threshold 2", "")
		} else {
			s.expect(0, "root change --add-key "+role+"=bob/"+role+".pub --threshold "+role+"=2", "")
		}
	}
	for _, role := range ofBob {
		s.remove("keys/" + role + "-2.key")
		s.remove("keys/" + role + "-2.pub")
	}
	return s
}

// followSteps runs the commands that the last command printed. bob signs for others.
func (s *shell) followSteps(host string) {
	s.t.Helper()
	output := s.err
	found := quoted.FindAllStringSubmatch(output, -1)
	if len(found) == 0 {
		s.t.Fatalf("no steps are printed:\n%s", output)
	}
	for _, m := range found {
		line := strings.TrimPrefix(m[1], "corpus ")
		if strings.HasPrefix(line, "keys rotate") {
			return
		}
		if strings.HasPrefix(line, "sign ") && !strings.Contains(line, "--key") {
			line += " --keys " + filepath.Join(s.dir, "bob")
		}
		if code := s.run(line); code != 0 {
			s.t.Fatalf("corpus %s: exit code %d\n%s%s\nit was printed by\n%s", line, code, s.out, s.err, output)
		}
		s.follows(line, host, "myapp/testing")
	}
}
