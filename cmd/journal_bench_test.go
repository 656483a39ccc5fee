//go:build peers

package cmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// TestDeployWithJournal measures the first deploy of the tree of 159 states with the journal and without, alternately,
// each on a copy of the same host: the difference is the cost of undo for a whole run. CORPUS_BENCH_ROUNDS is the
// number of rounds.
func TestDeployWithJournal(t *testing.T) {
	rounds := 15
	if n, err := strconv.Atoi(os.Getenv("CORPUS_BENCH_ROUNDS")); err == nil {
		rounds = max(n, 1)
	}
	const users = 40
	r := newReader(t)
	for path, text := range benchtree.Salt(users) {
		file := filepath.Join(r.dir, "tree/salt/config", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.must("corpus keys new", "corpus store init", "corpus build ./tree -o myapp.tar.zst",
		"corpus publish myapp 1 myapp.tar.zst --channel testing",
		"printf 'undo:\\n  limit: 0\\n' > off.yaml", "touch on.yaml")
	host := benchtree.Host(t, users)
	r.must("echo myapp-testing-useast1-898900 > " + host + "/etc/hostname")
	deploys := map[string][]spent{}
	for range rounds {
		for _, journal := range []string{"off", "on"} {
			r.must("cp -a " + host + " copy")
			deploys[journal] = append(deploys[journal], timed(t, r, "corpus-agent", "deploy", "--root", "copy", "--chroot",
				"--config", journal+".yaml", "--trust-root", "root.json"))
			r.must("chmod -R u+w copy && rm -r --one-file-system copy")
		}
	}
	on, off := middle(deploys["on"]), middle(deploys["off"])
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d rounds each, the middle one; load %sfirst deploy of %d states: with the journal %.0f ms, without "+
		"%.0f ms, ratio %.2f; processor %.0f ms and %.0f ms\n",
		rounds, load, benchtree.States(users), on.wall.Seconds()*1000, off.wall.Seconds()*1000,
		on.wall.Seconds()/off.wall.Seconds(), on.cpu.Seconds()*1000, off.cpu.Seconds()*1000)
}
