package attack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGitRefusesCloneWritableThroughACL gives ann an entry in the access control list of one part of root's clone,
// where she configures a program of hers.
func TestGitRefusesCloneWritableThroughACL(t *testing.T) {
	s := newStates(t, "entered")
	for part, list := range map[string]string{".git/config": "access", ".git/hooks": "access", ".git": "default"} {
		for _, sls := range []string{
			"t: {git.latest: [{name: /srv/in/repo.git}, {target: /srv/clone}, {force_reset: true}]}",
			"t: {git.detached: [{name: /srv/in/repo.git}, {target: /srv/clone}, {rev: main}]}",
			"t: {git.config_set: [{name: a.b}, {value: c}, {repo: /srv/clone}]}",
			"t: {test.nop: [{name: {{ salt['git.status']('/srv/clone') | length }}}]}",
			"t: {test.nop: [{onlyif: [{fun: git.status, cwd: /srv/clone}]}]}",
		} {
			s.begin()
			clone := filepath.Join(s.dir, "srv/clone")
			sh := exec.Command("sh", "-ec",
				`rm -rf "$2"; git clone -q "$1" "$2"; cd "$2"; git remote set-url origin /srv/in/repo.git
				git config core.fsmonitor /home/ann/program; git config filter.x.clean /home/ann/program
				echo '* filter=x' >.git/info/attributes; echo changed >file
				for h in post-checkout reference-transaction; do cp "$3" .git/hooks/$h; done`, "sh",
				filepath.Join(s.dir, "srv/in/repo.git"), clone,
				s.writeAsAnn("home/ann/program", "#!/bin/sh\nid -u >>/home/ann/pwned-$(id -u)\n", 0o755))
			sh.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			s.grant(filepath.Join(clone, part), list)
			got := s.applied(sls)
			if _, err := os.Stat(s.dir + "/home/ann/pwned-0"); err == nil {
				t.Errorf("%s: %s: root ran ann's program\n%s", part, sls, got.out)
			}
			if got.code == 0 || !strings.Contains(got.out, part+" is controlled by user ") {
				t.Errorf("%s: %s: exit code %d\n%s", part, sls, got.code, got.out)
			}
		}
	}
}
