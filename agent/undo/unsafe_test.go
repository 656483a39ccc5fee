package undo_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/host"
)

const ann = 64001

// TestLinksDoNotRedirectARollback undoes a run that removed files below a home, whose user has put links to root's
// directories in their place.
func TestLinksDoNotRedirectARollback(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this test needs root: it makes files of several users")
	}
	for name, remove := range map[string]func(s *scene, h *host.Host){
		"file.absent of the directory": func(s *scene, h *host.Host) { s.do(h.Files.RemoveAll("/home/ann/d")) },
		"file.directory clean":         func(s *scene, h *host.Host) { s.do(h.Files.Remove("/home/ann/d/run-parts")) },
		"user.absent purge":            func(s *scene, h *host.Host) { s.do(h.Files.RemoveAll("/home/ann")) },
	} {
		for where, target := range map[string]string{"absolute": "/etc/cron.hourly", "dots": "../../etc/cron.hourly",
			"dangling": "/etc/new"} {
			t.Run(name+" "+where, func(t *testing.T) {
				s := newScene(t)
				s.put("/home/ann/d/run-parts", "#!/bin/sh\n")
				s.put("/etc/cron.hourly/keep", "x")
				s.put("/srv/other", "old")
				own := func(p string) { s.do(os.Lchown(s.path(p), ann, ann)) }
				for _, p := range []string{"/home/ann", "/home/ann/d", "/home/ann/d/run-parts"} {
					own(p)
				}
				s.run("1", func(h *host.Host) { remove(s, h); s.do(h.WriteText("/srv/other", "new")) })
				s.do(errors.Join(os.MkdirAll(s.path("/home/ann"), 0o755), os.RemoveAll(s.path("/home/ann/d")),
					os.Symlink(target, s.path("/home/ann/d"))))
				own("/home/ann")
				own("/home/ann/d")
				did := s.back()
				if got := s.text("/etc/cron.hourly/run-parts") + s.text("/etc/new") +
					s.text("/etc/new/run-parts"); got != "(none)(none)(none)" {
					t.Errorf("root wrote %q through ann's link", got)
				}
				if s.text("/srv/other") != "old" || len(did.Failed) > 0 {
					t.Errorf("the other changes were not undone: %+v", did)
				}
				named := ""
				for _, l := range did.Left {
					named += l.String() + "\n"
				}
				if !strings.Contains(named, "file /home/ann/d/run-parts") ||
					!strings.Contains(named, "/home/ann/d is controlled by user 64001") ||
					!strings.Contains(named, "rollback --converge") {
					t.Errorf("the summary has left: %s", named)
				}
				// Once the link is removed, the same command undoes the rest.
				s.do(os.Remove(s.path("/home/ann/d")))
				s.do(os.Mkdir(s.path("/home/ann/d"), 0o755))
				own("/home/ann/d")
				if s.back(); s.text("/home/ann/d/run-parts") != "#!/bin/sh\n" {
					t.Errorf("the second restore left %s", s.text("/home/ann/d/run-parts"))
				}
			})
		}
	}
}
