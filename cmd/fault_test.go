//go:build integration

package cmd_test

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/packaging/hosttest/fault"
)

// moments is the environment variable with the number of system calls of a run to try; 0 for all of them.
const moments = "CORPUS_TEST_FAULTS"

// ownNames matches names that contain the time and the process by which a file was made.
var ownNames = regexp.MustCompile(`\d{8}T\d{6}\.\d{6}(-\w+)?`)

// tree lists everything on a host, except the records of a run about itself.
func tree(t *testing.T, root string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || strings.HasPrefix(name, "var/lib/corpus/reports/") ||
			strings.HasPrefix(name, "var/lib/corpus/journal/") {
			return err // records of events, which differ after a failure
		}
		line := ownNames.ReplaceAllString(name, "RUN") + " " + d.Type().String()
		switch {
		case d.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			line += " " + target
		case strings.HasPrefix(name, "etc/"), strings.Contains(name, "/releases/"):
			info, _ := d.Info()
			line += " " + info.Mode().String()
			if data, err := os.ReadFile(path); err == nil {
				line += " " + strconv.Quote(string(data))
			}
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "\n")
}

// difference returns the lines that are in only one of two listings.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	var lines []string
	for _, line := range g {
		if !slices.Contains(w, line) {
			lines = append(lines, "+ "+line)
		}
	}
	for _, line := range w {
		if !slices.Contains(g, line) {
			lines = append(lines, "- "+line)
		}
	}
	return strings.Join(lines, "\n")
}

// whole checks that current is the release that was signed. It may be absent only if it was absent before the run, on
// the host that begin is.
func (f *fleet) whole(begin, root string) error {
	current := filepath.Join(root, "srv/service/current")
	if _, err := os.Lstat(current); err != nil {
		if _, before := os.Lstat(filepath.Join(begin, "srv/service/current")); before == nil {
			return fmt.Errorf("current is no longer there: %w", err)
		}
		return nil
	}
	version, err := os.ReadFile(filepath.Join(current, "version"))
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(bin(f.t), "corpus-agent"), "verify")
	cmd.Env = f.env(root)
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "nothing is deployed") {
		return fmt.Errorf("%s is current: %w: %s", version, err, out)
	}
	return nil
}

// hostEvent is an event on a host.
type hostEvent struct {
	name  string
	begin string // the host before it
	args  []string
	code  int      // exit code without a fault
	ends  []string // possible states of the host after the next run
}

// hostEvents produces all events of a host from its first boot on, and calls tell while the store is in its state at
// that time.
func (f *fleet) hostEvents(tell func(hostEvent)) {
	f.t.Helper()
	deploy := []string{"deploy"}
	bare := f.host()
	f.service("1", "")
	one := f.afterCommand(bare, 0)
	tell(hostEvent{"first deploy", bare, deploy, 0, []string{tree(f.t, one)}})
	f.service("2", "")
	two := f.afterCommand(one, 0)
	tell(hostEvent{"upgrade", one, deploy, 0, []string{tree(f.t, two)}})
	back := f.afterCommand(two, 0, "rollback")
	tell(hostEvent{"rollback", two, []string{"rollback"}, 0, []string{tree(f.t, back), tree(f.t, two)}})
	f.service("3", "break:\n  file.managed:\n    - name: /etc/myapp/page\n    - source: /not-there\n    - order: last\n")
	bad := f.afterCommand(two, 7)
	tell(hostEvent{"broken version", two, deploy, 7, []string{tree(f.t, bad)}})
}

// afterCommand returns a host after a command, and after the run that follows it.
func (f *fleet) afterCommand(from string, code int, args ...string) string {
	f.t.Helper()
	host := f.copied(from)
	if len(args) == 0 {
		args = []string{"deploy"}
	}
	f.plain(host, code, args...)
	f.plain(host, 0, "deploy")
	return host
}

// checkInterrupted checks a host on which a run was interrupted or failed, and that the next one completes without
// help.
func (f *fleet) checkInterrupted(s hostEvent, host, what string) {
	f.t.Helper()
	if err := f.whole(s.begin, host); err != nil {
		f.t.Errorf("%s: %v", what, err)
	}
	o := f.agent(host, fault.Watch{Calls: fault.Naming()}, "deploy")
	if o.Code != 0 && o.Code != s.code {
		f.t.Errorf("%s: the next run ends with exit code %d: %s%s", what, o.Code, o.Out, o.Err)
	}
	if err := f.whole(s.begin, host); err != nil {
		f.t.Errorf("%s, and after the next run: %v", what, err)
	}
	if is := tree(f.t, host); !slices.Contains(s.ends, is) {
		f.t.Errorf("%s: after the next run the host differs by\n%s", what, difference(is, s.ends[0]))
	}
}

// TestKilledAtEveryCall kills runs at the system calls that add or remove names, or sync content.
func TestKilledAtEveryCall(t *testing.T) {
	f := newFleet(t)
	f.hostEvents(func(s hostEvent) {
		t.Run(s.name, func(t *testing.T) {
			f := f.with(t)
			all := f.agent(f.copied(s.begin), fault.Watch{Calls: fault.Naming()}, s.args...)
			if all.Code != s.code || len(all.Calls) < 30 {
				t.Fatalf("exit code %d after %d calls: %s%s", all.Code, len(all.Calls), all.Out, all.Err)
			}
			at := picked(t, len(all.Calls))
			for _, n := range at {
				host := f.copied(s.begin)
				w := fault.Watch{Calls: fault.Naming(), At: n}
				o := f.agent(host, w, s.args...)
				hit, _ := o.Hit(w)
				if o.Code != -1 && len(o.Calls) >= n {
					t.Errorf("killed at call %d, the run ended with exit code %d", n, o.Code)
				}
				f.checkInterrupted(s, host, fmt.Sprintf("killed at call %d, %s", n, hit))
			}
			t.Logf("killed at %d of %d calls", len(at), len(all.Calls))
		})
	})
}

// TestDiskFailsAtEveryCall runs with a disk that fails at one call, or is full from one call on.
func TestDiskFailsAtEveryCall(t *testing.T) {
	f := newFleet(t)
	f.hostEvents(func(s hostEvent) {
		for _, fails := range []struct {
			name string
			fault.Watch
		}{
			{"broken", fault.Watch{Calls: fault.Needing(), Errno: syscall.EIO}},
			{"full", fault.Watch{Calls: fault.Needing(), Errno: syscall.ENOSPC, Onward: true}},
		} {
			t.Run(s.name+"/"+fails.name, func(t *testing.T) {
				f := f.with(t)
				all := f.agent(f.copied(s.begin), fault.Watch{Calls: fault.Needing()}, s.args...)
				if all.Code != s.code || len(all.Calls) < 30 {
					t.Fatalf("exit code %d after %d calls: %s%s", all.Code, len(all.Calls), all.Out, all.Err)
				}
				codes := map[int]int{}
				at := picked(t, len(all.Calls))
				for _, n := range at {
					host := f.copied(s.begin)
					w := fails.Watch
					w.At = n
					o := f.agent(host, w, s.args...)
					hit, _ := o.Hit(w)
					what := fmt.Sprintf("%v at call %d, %s", w.Errno, n, hit)
					codes[o.Code]++
					f.failed(s, host, what, o, w.Errno)
					if strings.Contains(o.Out+o.Err, "the failed release stays under releases") {
						continue // the run reports this; until a prune, the tree differs from all others
					}
					f.checkInterrupted(s, host, what)
				}
				t.Logf("failed at %d of %d calls; exit codes %v", len(at), len(all.Calls), codes)
			})
		}
	})
}

// TestReleaseThatCouldNotBeSyncedIsNotAdopted fails the sync before the renaming of a release once. The kernel reports
// a lost write once: a second sync of the same release would succeed.
func TestReleaseThatCouldNotBeSyncedIsNotAdopted(t *testing.T) {
	f := newFleet(t)
	host := f.host()
	w := fault.Watch{Calls: []string{"syncfs"}, Errno: syscall.EIO, At: 1, Onward: true}
	o := f.agent(host, w, "deploy")
	if _, hit := o.Hit(w); !hit || o.Code == 0 {
		t.Fatalf("exit code %d after %v: %s%s", o.Code, o.Calls, o.Out, o.Err)
	}
	if !strings.Contains(o.Out+o.Err, "hint: ") {
		t.Errorf("the output is %s%s", o.Out, o.Err)
	}
	left, err := filepath.Glob(filepath.Join(host, "srv/projects/*/releases/*"))
	staged, stagedErr := filepath.Glob(filepath.Join(host, "srv/projects/*/releases/.*"))
	if len(left)+len(staged) > 0 || err != nil || stagedErr != nil {
		t.Errorf("the release that was not synced still exists: %v %v, %v, %v", left, staged, err, stagedErr)
	}
	f.plain(host, 0, "deploy")
}

// failed checks the output of a run on a failing disk, and the state after it.
func (f *fleet) failed(s hostEvent, host, what string, o fault.Outcome, errno syscall.Errno) {
	f.t.Helper()
	output := o.Out + o.Err
	switch o.Code {
	case s.code:
		return // the run succeeded nevertheless, or reported this like any other failure
	case 1, 2, 3, 7, 8:
	default:
		f.t.Errorf("%s: exit code %d: %s", what, o.Code, output)
	}
	if !strings.Contains(output, errno.Error()) || !strings.Contains(output, "hint: ") {
		f.t.Errorf("%s: exit code %d, output\n%s", what, o.Code, output)
	}
	next, current := f.link(host, "next"), f.link(host, "current")
	if o.Code != 8 && current != "" && next != current {
		f.t.Errorf("%s: exit code %d, and next is %s while current is %s", what, o.Code, next, current)
	}
}

func (f *fleet) link(host, name string) string {
	target, err := os.Readlink(filepath.Join(host, "srv/service", name))
	if err != nil {
		return "" // the link does not exist
	}
	return filepath.Base(target)
}

func (f *fleet) with(t *testing.T) *fleet {
	g := *f
	g.t = t
	return &g
}

// picked returns the system calls of a run to try: all, or some at intervals.
func picked(t *testing.T, calls int) []int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(moments), "12"))
	if err != nil {
		t.Fatalf("%s: %v", moments, err)
	}
	if n == 0 || n > calls {
		n = calls
	}
	var at []int
	for i := range n {
		at = append(at, 1+i*calls/n)
	}
	return at
}
