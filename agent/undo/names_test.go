package undo_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/hosttest"
)

// TestSecretsInNamesAreNotShown checks that a secret in a path, in a name or in the target of a link is redacted in
// what shows the journal, and that the restore finds the path nevertheless.
func TestSecretsInNamesAreNotShown(t *testing.T) {
	const secret = "hunter2"
	dir := func(s *scene) { s.do(os.MkdirAll(s.path("/srv/"+secret+"-data"), 0o755)) }
	for name, c := range map[string]struct {
		before func(s *scene)
		run    func(s *scene, h *host.Host)
		cut    bool
		shown  string
	}{
		"the name of a file": {
			run:   func(s *scene, h *host.Host) { s.write("/etc/"+secret+".conf", "x\n")(h) },
			shown: "# file /etc/***.conf (some.state of 1)\n--- /etc/***.conf\n+++ /dev/null\n",
		},
		"a directory above": {
			before: dir, run: func(s *scene, h *host.Host) { s.write("/srv/"+secret+"-data/f", "x\n")(h) },
			shown: "# file /srv/***-data/f (some.state of 1)\n",
		},
		"a directory above, in a run that was interrupted": {
			before: dir, cut: true,
			run:   func(s *scene, h *host.Host) { s.write("/srv/"+secret+"-data/f", "x\n")(h) },
			shown: "# file /srv/***-data/f (some.state of 1)\n",
		},
		"a file in a tree": {
			before: func(s *scene) { s.do(os.MkdirAll(s.path("/srv/tree"), 0o755)) },
			run: func(s *scene, _ *host.Host) {
				s.named(host.KindTree, "/srv/tree")
				s.put("/srv/tree/"+secret, "x\n")
			},
			shown: "# file /srv/tree/*** (some.state of 1)\n",
		},
		"the target of a link": {
			run:   func(s *scene, h *host.Host) { s.do(h.Files.Symlink("/srv/"+secret, "/etc/l")) },
			shown: "-link, whose target is not shown\n",
		},
		"a subject that cannot be restored": {
			before: func(s *scene) { s.put("/etc/f", "old\n") },
			run: func(s *scene, h *host.Host) {
				s.named(host.KindCommand, "/opt/"+secret+"/setup")
				s.write("/etc/f", "new\n")(h)
			},
			shown: "# file /etc/f",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if c.before != nil {
				c.before(s)
			}
			var options []string
			if c.cut {
				options = append(options, "cut")
			}
			s.run("1", func(h *host.Host) { c.run(s, h) }, options...)
			changes, back := s.shown()
			plan, _ := s.plan()
			summary, err := json.Marshal(plan.Summary())
			s.do(err)
			did, err := json.Marshal(s.restoreTwice())
			s.do(err)
			after, _ := s.shown()
			for _, text := range []string{changes, back, after, string(summary), string(did)} {
				if strings.Contains(text, secret) {
					t.Errorf("the secret is shown:\n%s", text)
				}
			}
			if !strings.Contains(back, c.shown) {
				t.Errorf("the restore would be\n%s\nwant\n%s", back, c.shown)
			}
			if text := s.text("/etc/" + secret + ".conf"); text != "(none)" {
				t.Errorf("the restore kept the file: %q", text)
			}
		})
	}
}

// TestChangedNamesWithSecretsAreNotShown checks that the reason why a path is not restored has no secret.
func TestChangedNamesWithSecretsAreNotShown(t *testing.T) {
	s := newScene(t)
	s.run("1", s.write("/etc/hunter2.conf", "x\n"))
	hosttest.Put(s, s.path("/etc/hunter2.conf"), "changed since\n", 0o644)
	did, err := json.Marshal(s.back())
	s.do(err)
	if text := string(did); strings.Contains(text, "hunter2") || !strings.Contains(text, "/etc/***.conf") {
		t.Errorf("the summary is %s", text)
	}
}
