//go:build peers

package cmd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/corpus-agent/corpus-agent/state/statetest/benchtree"
)

// peer is a program that is measured, with the tree that it applies below /srv/trees.
type peer struct {
	program  string
	packages []string // Debian's packages; none if it must be installed already
	dir      string   // directory below /srv/trees in which it runs
	args     []string
	nothing  func(out string, code int) bool // reports whether a run succeeded and had nothing to change
}

// peers returns the programs to compare, ours first.
func peers(users int) []peer {
	summary := func(out string, code int) bool {
		return code == 0 && strings.Contains(out, fmt.Sprintf("Succeeded: %d\n", benchtree.States(users)))
	}
	return []peer{
		{"corpus-agent", nil, "salt", []string{"call", "-c", "/srv/trees/salt", "state.highstate"}, summary},
		{"puppet", []string{"puppet-agent", "puppet-module-puppetlabs-cron-core", "puppet-module-puppetlabs-sshkeys-core"},
			"puppet",
			[]string{"apply", "--detailed-exitcodes", "--hiera_config", "/srv/trees/puppet/hiera.yaml", "--modulepath",
				"/srv/trees/puppet/modules:/usr/share/puppet/modules", "site.pp"},
			func(_ string, code int) bool { return code == 0 }},
		// The package ansible has the collections, which ansible-core lacks; python3-apt is for its module apt.
		{"ansible-playbook", []string{"ansible-core", "ansible", "python3-apt"}, "ansible",
			[]string{"-i", "localhost,", "-c", "local", "site.yml"},
			func(out string, code int) bool { return code == 0 && strings.Contains(out, "changed=0 ") }},
		{"salt-call", nil, "salt", []string{"--local", "--no-color", "--retcode-passthrough", "-c", "/srv/trees/salt",
			"state.highstate"}, summary},
	}
}

// row has the resources that a program used with nothing to change, or the reason why they are not known.
type row struct {
	name      string
	wall, cpu time.Duration // median of the runs; child processes included
	peak      int64         // KiB, of the largest process in any run
	absent    string
}

// TestPeers measures this engine, puppet, ansible and Salt side by side, each on a separate host that it has converged
// before. CORPUS_PEERS_USERS is the number of users in the trees.
func TestPeers(t *testing.T) {
	scratch := os.Getenv("CORPUS_PEERS_SCRATCH")
	if scratch == "" {
		apart(t)
		return
	}
	if os.Getpid() != 1 {
		t.Fatal("CORPUS_PEERS_SCRATCH is set, which only this test may do for itself: unset it")
	}
	users := 40
	if text := os.Getenv("CORPUS_PEERS_USERS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("CORPUS_PEERS_USERS is %q, not a number of users", text)
		}
		users = n
	}
	mount(t, "proc", "/proc", "proc", "") // a new PID namespace needs a new /proc
	agent := filepath.Join(bin(t), "corpus-agent")
	mount(t, "tmpfs", scratch, "tmpfs", "mode=0755")
	list := peers(users)
	missing := installPeers(t, scratch, agent, users, list)
	var rows []row
	for _, p := range list {
		r := row{name: p.program, absent: missing[p.program]}
		if r.absent == "" {
			r = comparePeer(t, scratch, p)
		}
		rows = append(rows, r)
	}
	fmt.Print(table(benchtree.States(users), rows))
}

// installPeers makes the lower layer of every host: the running system with the programs and the trees. It returns the
// reason for each program that does not exist.
func installPeers(t *testing.T, scratch, agent string, users int, list []peer) map[string]string {
	root := mountRoot(t, scratch, "installed", "/")
	defer unmountRoot(t, root)
	trees := filepath.Join(root, "srv/trees")
	minion := "file_client: local\nid: bench\nfile_roots:\n  base: [/srv/trees/salt/states]\npillar_roots:\n" +
		"  base: [/srv/trees/salt/pillar]\n"
	err := benchtree.Write(trees, users)
	if err == nil {
		// cp reads the program: a program that this process starts would include this process's peak memory in its own.
		err = exec.Command("cp", agent, filepath.Join(root, "usr/local/bin/corpus-agent")).Run()
	}
	for path, f := range map[string]struct {
		text string
		mode os.FileMode
	}{"srv/trees/salt/minion": {minion, 0o644}, "usr/sbin/policy-rc.d": {"#!/bin/sh\nexit 101\n", 0o755}} {
		if err == nil {
			err = os.WriteFile(filepath.Join(root, path), []byte(f.text), f.mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	apt(t, root, "update")
	apt(t, root, "install", "cron", "curl", "git", "procps")
	missing := map[string]string{}
	for _, p := range list {
		why := "not on PATH"
		if len(p.packages) > 0 {
			why = apt(t, root, "install", p.packages...)
		}
		if lookIn(root, p.program) == "" {
			missing[p.program] = why
		}
	}
	return missing
}

// apt runs apt-get in a root. It logs an error, and returns a short description of it.
func apt(t *testing.T, root, verb string, packages ...string) string {
	args := append([]string{"/usr/bin/apt-get", "-qy", "--no-install-recommends", verb}, packages...)
	out, err := inRoot(root, "/", args...).CombinedOutput()
	if err == nil {
		return ""
	}
	t.Logf("apt-get cannot %s %s: %v\n%s", verb, strings.Join(packages, " "), err, lastLines(string(out)))
	return "apt-get cannot " + verb + " it"
}

// comparePeer converges a new host with a program, and measures three runs after that.
func comparePeer(t *testing.T, scratch string, p peer) row {
	root := mountRoot(t, scratch, p.program, filepath.Join(scratch, "installed/upper")+":/")
	defer unmountRoot(t, root)
	r, args := row{name: p.program}, append([]string{lookIn(root, p.program)}, p.args...)
	var walls, cpus []time.Duration
	for run := range 4 {
		var out bytes.Buffer
		cmd := inRoot(root, filepath.Join("/srv/trees", p.dir), args...)
		cmd.Stdout, cmd.Stderr = &out, &out
		start := time.Now()
		err := cmd.Run()
		wall := time.Since(start)
		if cmd.ProcessState == nil {
			t.Fatalf("%s: %v", p.program, err)
		}
		if run == 0 {
			continue // the first run changes everything
		}
		if !p.nothing(out.String(), cmd.ProcessState.ExitCode()) {
			t.Errorf("%s changed the host or failed, with code %d:\n%s", p.program, cmd.ProcessState.ExitCode(),
				lastLines(out.String()))
			return row{name: p.program, absent: "does not come to rest"}
		}
		walls, cpus = append(walls, wall), append(cpus, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		r.peak = max(r.peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	}
	t.Logf("%s: %v on the clock, %v of the processor, %d KiB", p.program, walls, cpus, r.peak)
	slices.Sort(walls)
	slices.Sort(cpus)
	r.wall, r.cpu = walls[1], cpus[1]
	return r
}

// table returns the rows side by side, with their ratios to the first.
func table(states int, rows []row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%d states, no change\tclock\tprocessor\tpeak memory\tratios\n", states)
	ours := rows[0]
	for _, r := range rows {
		if r.absent != "" {
			fmt.Fprintf(w, "%s\tabsent: %s\n", r.name, r.absent)
			continue
		}
		fmt.Fprintf(w, "%s\t%.3f s\t%.3f s\t%.0f MiB\t", r.name, r.wall.Seconds(), r.cpu.Seconds(), float64(r.peak)/1024)
		if ours.absent == "" {
			fmt.Fprintf(w, "%.1f, %.1f, %.1f", float64(r.wall)/float64(ours.wall), float64(r.cpu)/float64(ours.cpu),
				float64(r.peak)/float64(ours.peak))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
	return b.String()
}

// lastLines returns the last lines of a program's output.
func lastLines(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
